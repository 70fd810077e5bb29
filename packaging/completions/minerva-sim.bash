_minerva__sim() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="minerva__sim"
                ;;
            minerva__sim,admit)
                cmd="minerva__sim__subcmd__admit"
                ;;
            minerva__sim,compare)
                cmd="minerva__sim__subcmd__compare"
                ;;
            minerva__sim,figure)
                cmd="minerva__sim__subcmd__figure"
                ;;
            minerva__sim,fit)
                cmd="minerva__sim__subcmd__fit"
                ;;
            minerva__sim,reproduce)
                cmd="minerva__sim__subcmd__reproduce"
                ;;
            minerva__sim,run)
                cmd="minerva__sim__subcmd__run"
                ;;
            minerva__sim,trace)
                cmd="minerva__sim__subcmd__trace"
                ;;
            minerva__sim__subcmd__trace,convert)
                cmd="minerva__sim__subcmd__trace__subcmd__convert"
                ;;
            minerva__sim__subcmd__trace,info)
                cmd="minerva__sim__subcmd__trace__subcmd__info"
                ;;
            minerva__sim__subcmd__trace,slice)
                cmd="minerva__sim__subcmd__trace__subcmd__slice"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        minerva__sim)
            opts="-h -V --help --version run compare admit reproduce figure trace fit"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__admit)
            opts="-h --profile --scheduler --every --htbs-turn --htbs-wait --seed --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scheduler)
                    COMPREPLY=($(compgen -W "noop mq-deadline anticipatory cfq bfq sfq pclock htbs htbs-original mclock mclock-allow tag tag-original" -- "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-turn)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__compare)
            opts="-h --profile --engine --seed --until --depth --htbs-turn --htbs-wait --fault --format --malformed-max --sort-window --in-order --object-bytes --fold --speed --trace-tenants --trace-weight --trace-tag --trace-depth --report --json --schedulers --threads --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-turn)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fault)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malformed-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --speed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-tenants)
                    COMPREPLY=($(compgen -W "volume one" -- "${cur}"))
                    return 0
                    ;;
                --trace-weight)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-tag)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --schedulers)
                    COMPREPLY=($(compgen -W "noop mq-deadline anticipatory cfq bfq sfq pclock htbs htbs-original mclock mclock-allow tag tag-original" -- "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__figure)
            opts="-h --disks --json --help htbs-contracts htbs-elsewhere htbs-throughput tag-inversions queueing background mapreduce sim-speed disk-time disk-model trace-memory"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --disks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__fit)
            opts="-h --base --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --base)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__reproduce)
            opts="-h --seed --traces --plot --runs --slice --scale --scene --json --report --help htbs tag fennel background makespan proactive mapreduce interleave"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --traces)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slice)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scene)
                    COMPREPLY=($(compgen -W "drawn fixed newcomers one-name" -- "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__run)
            opts="-h --profile --engine --seed --until --depth --htbs-turn --htbs-wait --fault --format --malformed-max --sort-window --in-order --object-bytes --fold --speed --trace-tenants --trace-weight --trace-tag --trace-depth --report --json --scheduler --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-turn)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --htbs-wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fault)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malformed-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --speed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-tenants)
                    COMPREPLY=($(compgen -W "volume one" -- "${cur}"))
                    return 0
                    ;;
                --trace-weight)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-tag)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scheduler)
                    COMPREPLY=($(compgen -W "noop mq-deadline anticipatory cfq bfq sfq pclock htbs htbs-original mclock mclock-allow tag tag-original" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__trace)
            opts="-h --help info convert slice"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__trace__subcmd__convert)
            opts="-h --format --malformed-max --sort-window --in-order --object-bytes --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malformed-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__trace__subcmd__info)
            opts="-h --format --malformed-max --sort-window --in-order --object-bytes --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malformed-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        minerva__subcmd__sim__subcmd__trace__subcmd__slice)
            opts="-h --from --until --volume --skip --count --format --malformed-max --sort-window --in-order --object-bytes --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --until)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --volume)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --skip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --count)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --malformed-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --object-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _minerva__sim -o nosort -o bashdefault -o default minerva-sim
else
    complete -F _minerva__sim -o bashdefault -o default minerva-sim
fi
