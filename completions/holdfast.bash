# bash completion for holdfast, made by `holdfast help --completion bash`

# What may follow the words of a command: more words, options, and those of them
# that take a value.
_holdfast_know()
{
    commands=''
    options=' --config -c --redis --namespace --json --help -h'
    valued=' --config -c --redis --namespace '
    case $1 in
    '' | 'help') commands=' enqueue job dead queue lock locks workers worker check doctor script demo bench version help' ;;
    'job' | 'help job') commands=' show list why retry cancel delete' ;;
    'dead' | 'help dead') commands=' list retry purge' ;;
    'queue' | 'help queue') commands=' list show pause resume limit purge' ;;
    'locks' | 'help locks') commands=' list show release revoke fence-check' ;;
    'script' | 'help script') commands=' enqueue' ;;
    'enqueue')
        options+=' --queue -q --in --at --id --max-attempts --timeout --wait --bulk --run --atomic'
        valued+=' --queue -q --in --at --id --max-attempts --timeout --bulk --run '
        ;;
    'job show')
        options+=' --queue -q --payload'
        valued+=' --queue -q '
        ;;
    'job list')
        options+=' --queue -q --state --limit --after'
        valued+=' --queue -q --state --limit --after '
        ;;
    'job why')
        options+=' --queue -q'
        valued+=' --queue -q '
        ;;
    'job retry')
        options+=' --queue -q'
        valued+=' --queue -q '
        ;;
    'job cancel')
        options+=' --queue -q --wait'
        valued+=' --queue -q '
        ;;
    'job delete')
        options+=' --queue -q --yes'
        valued+=' --queue -q '
        ;;
    'dead list')
        options+=' --queue -q --type --since --limit --after'
        valued+=' --queue -q --type --since --limit --after '
        ;;
    'dead retry')
        options+=' --queue -q --type --since --limit --rate'
        valued+=' --queue -q --type --since --limit --rate '
        ;;
    'dead purge')
        options+=' --queue -q --type --since --limit --yes'
        valued+=' --queue -q --type --since --limit '
        ;;
    'queue list')
        options+=' --limit --after'
        valued+=' --limit --after '
        ;;
    'queue limit')
        options+=' --max-running --rate'
        valued+=' --max-running --rate '
        ;;
    'queue purge')
        options+=' --yes'
        valued+=' '
        ;;
    'lock')
        options+=' --exclusive -x --shared -s --permits --nonblock -n --wait -w --conflict-exit-code -E --ttl --grace --max-hold --wait-replicas --fair --spin --verbose -v'
        valued+=' --permits --wait -w --conflict-exit-code -E --ttl --grace --max-hold --wait-replicas '
        ;;
    'locks list')
        options+=' --limit --after'
        valued+=' --limit --after '
        ;;
    'locks show')
        options+=' --limit'
        valued+=' --limit '
        ;;
    'locks release')
        options+=' --force --owner --yes'
        valued+=' --owner '
        ;;
    'locks revoke')
        options+=' --owner'
        valued+=' --owner '
        ;;
    'locks fence-check')
        options+=' --owner --remember'
        valued+=' --owner --remember '
        ;;
    'workers')
        options+=' --all --limit --after'
        valued+=' --limit --after '
        ;;
    'worker')
        options+=' --queue -q --concurrency -n --burst'
        valued+=' --queue -q --concurrency -n '
        ;;
    'doctor')
        options+=' --queue -q --idle --fix'
        valued+=' --queue -q '
        ;;
    'script enqueue')
        options+=' --sha1'
        valued+=' '
        ;;
    'demo')
        options+=' --keep --svg'
        valued+=' --svg '
        ;;
    'bench')
        options+=' --jobs --payload --concurrency -n'
        valued+=' --jobs --payload --concurrency -n '
        ;;
    esac
}

_holdfast()
{
    local IFS=$' \t\n' command='' words='' commands options valued i
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    # To bash "=" is a word of its own.
    if [[ $word == '=' ]]; then
        word=''
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    _holdfast_know ''
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) return ;; # what follows is not ours
        -*)
            if [[ $valued == *" ${COMP_WORDS[i]} "* ]]; then
                if [[ ${COMP_WORDS[i + 1]} == '=' ]]; then ((i++)); fi
                ((i++))
            fi
            ;;
        *)
            if [[ -n $commands ]]; then
                command+="${command:+ }${COMP_WORDS[i]}"
                _holdfast_know "$command"
            fi
            ;;
        esac
    done
    case "$command $before" in # to return is to complete names of files
    *' -c') return ;;
    *' --config') return ;;
    'enqueue --bulk') return ;;
    'job list --state') words='ready delayed retry running dead' ;;
    'demo --svg') return ;;
    *)
        if [[ $valued == *" $before "* ]]; then
            words='' # nothing is known of it
        elif [[ $word == -* ]]; then
            words=$options
        else
            words=$commands
        fi
        ;;
    esac
    compopt +o default 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _holdfast holdfast
