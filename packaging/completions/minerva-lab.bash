_minerva__lab() {
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
                cmd="minerva__lab"
                ;;
            minerva__lab,demo)
                cmd="minerva__lab__subcmd__demo"
                ;;
            minerva__lab,disk)
                cmd="minerva__lab__subcmd__disk"
                ;;
            minerva__lab,figure)
                cmd="minerva__lab__subcmd__figure"
                ;;
            minerva__lab,reproduce)
                cmd="minerva__lab__subcmd__reproduce"
                ;;
            minerva__lab,sweep)
                cmd="minerva__lab__subcmd__sweep"
                ;;
            minerva__lab__subcmd__disk,create)
                cmd="minerva__lab__subcmd__disk__subcmd__create"
                ;;
            minerva__lab__subcmd__disk,destroy)
                cmd="minerva__lab__subcmd__disk__subcmd__destroy"
                ;;
            minerva__lab__subcmd__disk,list)
                cmd="minerva__lab__subcmd__disk__subcmd__list"
                ;;
            minerva__lab__subcmd__disk,profiles)
                cmd="minerva__lab__subcmd__disk__subcmd__profiles"
                ;;
            minerva__lab__subcmd__disk,stats)
                cmd="minerva__lab__subcmd__disk__subcmd__stats"
                ;;
            minerva__lab__subcmd__figure,against-kernel)
                cmd="minerva__lab__subcmd__figure__subcmd__against__subcmd__kernel"
                ;;
            minerva__lab__subcmd__figure,cache-migration)
                cmd="minerva__lab__subcmd__figure__subcmd__cache__subcmd__migration"
                ;;
            minerva__lab__subcmd__figure,cache-tenants)
                cmd="minerva__lab__subcmd__figure__subcmd__cache__subcmd__tenants"
                ;;
            minerva__lab__subcmd__figure,cache-throughput)
                cmd="minerva__lab__subcmd__figure__subcmd__cache__subcmd__throughput"
                ;;
            minerva__lab__subcmd__figure,characterise)
                cmd="minerva__lab__subcmd__figure__subcmd__characterise"
                ;;
            minerva__lab__subcmd__figure,clients)
                cmd="minerva__lab__subcmd__figure__subcmd__clients"
                ;;
            minerva__lab__subcmd__figure,endogenic)
                cmd="minerva__lab__subcmd__figure__subcmd__endogenic"
                ;;
            minerva__lab__subcmd__figure,gaps)
                cmd="minerva__lab__subcmd__figure__subcmd__gaps"
                ;;
            minerva__lab__subcmd__figure,idle)
                cmd="minerva__lab__subcmd__figure__subcmd__idle"
                ;;
            minerva__lab__subcmd__figure,idle-writes)
                cmd="minerva__lab__subcmd__figure__subcmd__idle__subcmd__writes"
                ;;
            minerva__lab__subcmd__figure,kill-restore)
                cmd="minerva__lab__subcmd__figure__subcmd__kill__subcmd__restore"
                ;;
            minerva__lab__subcmd__figure,makespan)
                cmd="minerva__lab__subcmd__figure__subcmd__makespan"
                ;;
            minerva__lab__subcmd__figure,memory)
                cmd="minerva__lab__subcmd__figure__subcmd__memory"
                ;;
            minerva__lab__subcmd__figure,noisy-neighbour)
                cmd="minerva__lab__subcmd__figure__subcmd__noisy__subcmd__neighbour"
                ;;
            minerva__lab__subcmd__figure,rise)
                cmd="minerva__lab__subcmd__figure__subcmd__rise"
                ;;
            minerva__lab__subcmd__figure,slice-cost)
                cmd="minerva__lab__subcmd__figure__subcmd__slice__subcmd__cost"
                ;;
            minerva__lab__subcmd__figure,undo-bites)
                cmd="minerva__lab__subcmd__figure__subcmd__undo__subcmd__bites"
                ;;
            minerva__lab__subcmd__figure,vm-contracts)
                cmd="minerva__lab__subcmd__figure__subcmd__vm__subcmd__contracts"
                ;;
            minerva__lab__subcmd__figure,vm-endogenic)
                cmd="minerva__lab__subcmd__figure__subcmd__vm__subcmd__endogenic"
                ;;
            minerva__lab__subcmd__figure,vm-mix)
                cmd="minerva__lab__subcmd__figure__subcmd__vm__subcmd__mix"
                ;;
            minerva__lab__subcmd__figure,vm-tags)
                cmd="minerva__lab__subcmd__figure__subcmd__vm__subcmd__tags"
                ;;
            minerva__lab__subcmd__figure,vm-urgent)
                cmd="minerva__lab__subcmd__figure__subcmd__vm__subcmd__urgent"
                ;;
            minerva__lab__subcmd__figure,weights-bite)
                cmd="minerva__lab__subcmd__figure__subcmd__weights__subcmd__bite"
                ;;
            minerva__lab__subcmd__figure,worth)
                cmd="minerva__lab__subcmd__figure__subcmd__worth"
                ;;
            minerva__lab__subcmd__reproduce,characterise)
                cmd="minerva__lab__subcmd__reproduce__subcmd__characterise"
                ;;
            minerva__lab__subcmd__reproduce,endogenic)
                cmd="minerva__lab__subcmd__reproduce__subcmd__endogenic"
                ;;
            minerva__lab__subcmd__reproduce,htbs)
                cmd="minerva__lab__subcmd__reproduce__subcmd__htbs"
                ;;
            minerva__lab__subcmd__reproduce,interleave)
                cmd="minerva__lab__subcmd__reproduce__subcmd__interleave"
                ;;
            minerva__lab__subcmd__reproduce,makespan)
                cmd="minerva__lab__subcmd__reproduce__subcmd__makespan"
                ;;
            minerva__lab__subcmd__reproduce,proactive)
                cmd="minerva__lab__subcmd__reproduce__subcmd__proactive"
                ;;
            minerva__lab__subcmd__reproduce,table)
                cmd="minerva__lab__subcmd__reproduce__subcmd__table"
                ;;
            minerva__lab__subcmd__reproduce,tag)
                cmd="minerva__lab__subcmd__reproduce__subcmd__tag"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        minerva__lab)
            opts="-h -V --help --version disk demo figure reproduce sweep"
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
        minerva__subcmd__lab__subcmd__demo)
            opts="-h --scale --profile --scene --seed --report --json --binaries --minervad --equal-only --weights --help tenants data-path cache"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scene)
                    COMPREPLY=($(compgen -W "noisy-neighbour together" -- "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --weights)
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
        minerva__subcmd__lab__subcmd__disk)
            opts="-h --help create list stats destroy profiles"
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
        minerva__subcmd__lab__subcmd__disk__subcmd__create)
            opts="-h --profile --name --size --elevator --backing --queue-depth --seed --foreground --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --backing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --queue-depth)
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
        minerva__subcmd__lab__subcmd__disk__subcmd__destroy)
            opts="-h --all --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        minerva__subcmd__lab__subcmd__disk__subcmd__list)
            opts="-h --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        minerva__subcmd__lab__subcmd__disk__subcmd__profiles)
            opts="-h --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        minerva__subcmd__lab__subcmd__disk__subcmd__stats)
            opts="-h --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
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
        minerva__subcmd__lab__subcmd__figure)
            opts="-h --help endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth"
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
        minerva__subcmd__lab__subcmd__figure__subcmd__against__subcmd__kernel)
            opts="-h --scene --arm --profile --guest --no-guest --rounds --scale --seed --runs --plots --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scene)
                    COMPREPLY=($(compgen -W "demo short-2 short-3 commit-1 commit-2 lasting mixed-16 deep buffered" -- "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "mq-deadline kyber none bfq bfq-low-0 minerva minerva-strict minerva-not-strict minerva-low-by-use minerva-low-0 iocost minerva-iocost minerva-max" -- "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plots)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__cache__subcmd__migration)
            opts="-h --profile --elevator --pool-profile --megabytes --seconds --bursts --rounds --seed --daemon --runs --report --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --megabytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bursts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__cache__subcmd__tenants)
            opts="-h --tenants --files --idle-seconds --seconds --rounds --hostile-only --pool --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --tenants)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__cache__subcmd__throughput)
            opts="-h --pool --pool-profile --megabytes --span-ms --rounds --passthrough-hp --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --pool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --megabytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --span-ms)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --passthrough-hp)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__characterise)
            opts="-h --profile --elevator --program --scale --report --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__clients)
            opts="-h --clients --requests-per-second --seconds --tenants --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --requests-per-second)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tenants)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__endogenic)
            opts="-h --profile --scale --level --deadline --seed --pairs --others --others-scale --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --level)
                    COMPREPLY=($(compgen -W "low lowest" -- "${cur}"))
                    return 0
                    ;;
                --deadline)
                    COMPREPLY=($(compgen -W "begin done" -- "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --others)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --others-scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__gaps)
            opts="-h --disk --profile --elevator --kind --work --reader --pairs --rounds --bursts --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disk)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --work)
                    COMPREPLY=($(compgen -W "backup delete scrub" -- "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -W "backup delete scrub" -- "${cur}"))
                    return 0
                    ;;
                --reader)
                    COMPREPLY=($(compgen -W "pauses steady" -- "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bursts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__idle)
            opts="-h --profile --guest --no-guest --elevator --rounds --seconds --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__idle__subcmd__writes)
            opts="-h --tenants --active --processes --slices --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --tenants)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --processes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__kill__subcmd__restore)
            opts="-h --kills --effect-checks --effect-seconds --effect-error-percent --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --kills)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --effect-checks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --effect-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --effect-error-percent)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__makespan)
            opts="-h --profile --elevator --jobs --scale --rounds --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs)
                    COMPREPLY=($(compgen -W "mixed alike" -- "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__memory)
            opts="-h --tenants --active --processes --slices --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --tenants)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --processes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__noisy__subcmd__neighbour)
            opts="-h --profile --scale --pairs --seed --weights --share-heavy --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --weights)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --share-heavy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__rise)
            opts="-h --profile --weight --others --seconds --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --weight)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --others)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__slice__subcmd__cost)
            opts="-h --tenants --active --processes --slices --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --tenants)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --processes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__undo__subcmd__bites)
            opts="-h --profile --back-end --by --rounds --seconds --no-guest --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --back-end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --by)
                    COMPREPLY=($(compgen -W "end mode exclusion" -- "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__vm__subcmd__contracts)
            opts="-h --profile --arm --block --seconds --runs --readers --seed --logs --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "htbs noop pclock mclock kernel-bfq qemu-throttle" -- "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --readers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__vm__subcmd__endogenic)
            opts="-h --profile --scale --level --deadline --rounds --no-kernel --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --level)
                    COMPREPLY=($(compgen -W "low lowest" -- "${cur}"))
                    return 0
                    ;;
                --deadline)
                    COMPREPLY=($(compgen -W "begin done" -- "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__vm__subcmd__mix)
            opts="-h --profile --arm --seconds --runs --seed --logs --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "htbs noop pclock mclock kernel-bfq qemu-throttle" -- "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__vm__subcmd__tags)
            opts="-h --profile --block --depth --access --tag-depth --seconds --runs --logs --no-kernel --arm64 --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access)
                    COMPREPLY=($(compgen -W "read write" -- "${cur}"))
                    return 0
                    ;;
                --tag-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --logs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__vm__subcmd__urgent)
            opts="-h --profile --tag-depth --block --depth --seconds --runs --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tag-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__weights__subcmd__bite)
            opts="-h --profile --raw --block --random --seconds --no-guest --windows --set --queue-depth --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --windows)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --set)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --queue-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__figure__subcmd__worth)
            opts="-h --scene --profile --arm --like --pairs --scale --seed --folder --runs-max --json --binaries --minervad --seconds --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --scene)
                    COMPREPLY=($(compgen -W "proactive interleave" -- "${cur}"))
                    return 0
                    ;;
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "equal fennel minerva-off minerva-last kernel minerva oracle" -- "${cur}"))
                    return 0
                    ;;
                --like)
                    COMPREPLY=($(compgen -W "named unnamed unseen" -- "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --folder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
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
        minerva__subcmd__lab__subcmd__reproduce)
            opts="-h --help endogenic makespan characterise proactive interleave htbs tag table"
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__characterise)
            opts="-h --profile --elevator --program --scale --report --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__endogenic)
            opts="-h --profile --scale --report --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__htbs)
            opts="-h --profile --arm --readers --report --rounds --seconds --block --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "pclock htbs mclock kernel-bfq noop" -- "${cur}"))
                    return 0
                    ;;
                --readers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__interleave)
            opts="-h --profile --arm --like --pairs --scale --seed --folder --runs-max --json --binaries --minervad --seconds --plot --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "equal fennel minerva-off minerva-last kernel minerva oracle" -- "${cur}"))
                    return 0
                    ;;
                --like)
                    COMPREPLY=($(compgen -W "named unnamed unseen" -- "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --folder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plot)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__makespan)
            opts="-h --profile --elevator --jobs --scale --rounds --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --elevator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs)
                    COMPREPLY=($(compgen -W "mixed alike" -- "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__proactive)
            opts="-h --profile --arm --like --pairs --scale --seed --folder --runs-max --json --binaries --minervad --seconds --plot --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "equal fennel minerva-off minerva-last kernel minerva oracle" -- "${cur}"))
                    return 0
                    ;;
                --like)
                    COMPREPLY=($(compgen -W "named unnamed unseen" -- "${cur}"))
                    return 0
                    ;;
                --pairs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --folder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plot)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__table)
            opts="-h --profile --scale --rounds --seed --folder --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --scale)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --folder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__reproduce__subcmd__tag)
            opts="-h --profile --arm --depth --tag-depth --report --rounds --seconds --block --seed --json --binaries --minervad --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arm)
                    COMPREPLY=($(compgen -W "noop kernel-bfq tag" -- "${cur}"))
                    return 0
                    ;;
                --depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tag-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rounds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --block)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --binaries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --minervad)
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
        minerva__subcmd__lab__subcmd__sweep)
            opts="-h --prefix --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --prefix)
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
    complete -F _minerva__lab -o nosort -o bashdefault -o default minerva-lab
else
    complete -F _minerva__lab -o bashdefault -o default minerva-lab
fi
