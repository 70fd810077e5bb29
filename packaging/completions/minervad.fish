complete -c minervad -l config -d 'The operator\'s file [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minervad -l mode -d 'What to do, whatever the file says' -r -f -a "observe\t'Watch only'
shadow\t'Decide and explain, write nothing'
enforce\t'Decide and write'"
complete -c minervad -l slices -d 'Put everything back and exit after this many slices' -r
complete -c minervad -l check -d 'Check the file, list what is missing on this host, and exit'
complete -c minervad -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minervad -s V -l version -d 'Print version'
