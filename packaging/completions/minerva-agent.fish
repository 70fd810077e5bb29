complete -c minerva-agent -l upstream -d 'The server: unix:/PATH, vsock:CID:PORT or https://HOST:PORT [default: $MINERVA_UPSTREAM, else the host\'s socket if it is mounted here, else the host by vsock]' -r
complete -c minerva-agent -l socket -d 'Where to listen [default: /run/minerva/agent.sock for root, else minerva/agent.sock in $XDG_RUNTIME_DIR, else in /tmp/minerva-UID]' -r -F
complete -c minerva-agent -l report-period -d 'How often to report; 0 for never' -r
complete -c minerva-agent -l idle-exit -d 'Exit when nobody has been connected for this long' -r
complete -c minerva-agent -l shared -d 'Let every user of this machine connect; always the case below /run/minerva'
complete -c minerva-agent -l print-report -d 'Watch for a second, print the report, and exit'
complete -c minerva-agent -l json -d 'Print that report as JSON'
complete -c minerva-agent -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-agent -s V -l version -d 'Print version'
