# fish completion for holdfast: `holdfast __complete` tells what may stand at the cursor.
function __holdfast_find # fails where fish is to complete the names of files
    set -l words (commandline -opc) (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    command -q $program
    and set -g __holdfast_found (command $program __complete -- $words[2..-1] 2>/dev/null)
end
complete -c holdfast -n __holdfast_find -f -a '"$__holdfast_found[1]"$__holdfast_found[2..-1]'
