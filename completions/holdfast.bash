# bash completion for holdfast: `holdfast __complete` tells what may stand at the cursor.
_holdfast()
{
    local word words=() found cursor=${COMP_WORDS[COMP_CWORD]#=}
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do # bash divides words at = : @
        if [[ ${#words[@]} -gt 0 && ($word == [=:@]* || ${words[-1]} == *[=:@]) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    found=$(command "${1/#\~\//$HOME/}" __complete -- "${words[@]}" 2>/dev/null) || return
    compopt +o default 2>/dev/null # no names of files
    mapfile -t -s 1 words <<<"$found"
    mapfile -t COMPREPLY < <(IFS=$'\n' && compgen -W "${words[*]%%$'\t'*}" -- "$cursor")
}
complete -o default -F _holdfast holdfast
