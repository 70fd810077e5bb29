# What the scripts of packages and their units share. Each line that is printed begins with a name, which the test looks for.
uptime_s() { cut -d . -f 1 /proc/uptime; }
say() { echo "$1: $(echo "$2" | tr '\n' ';')"; echo "$1 after $(uptime_s) s" >&2; }
# Which version of a package is installed, but for the commit that it is of.
version() { dpkg-query -W -f '${Version}' "$1" | sed 's/+git[0-9.]*//'; }
# Waits up to five minutes until a command succeeds: other guests may have the processors.
until_so() {
    begun_s=$(uptime_s)
    until "$@" > /dev/null 2>&1; do
        [ $(($(uptime_s) - begun_s)) -lt 300 ] || return 1
        sleep 0.5
    done
}

