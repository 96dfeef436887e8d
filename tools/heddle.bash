# Completion of heddle for bash: the tool itself says what a word may become (heddle complete).
_heddle() {
    local line=${COMP_LINE:0:COMP_POINT} words=() breaks="" program current cut candidate
    # shellcheck disable=SC2162 # backslashes count as bash reads them
    read -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    COMPREPLY=()
    program=$(type -P -- "${words[0]}") || return 0
    # Bash takes what is behind the last of these characters for the word, and replaces that alone.
    for candidate in = :; do [[ $COMP_WORDBREAKS == *"$candidate"* ]] && breaks+=$candidate; done
    current=${words[${#words[@]} - 1]}
    cut=""
    [[ -n $breaks ]] && cut=${current%"${current##*["$breaks"]}"}
    while IFS= read -r candidate; do
        candidate=${candidate#"$cut"}
        [[ $candidate == *[=:,/] ]] && compopt -o nospace 2>/dev/null
        [[ -f $candidate && $candidate == *[[:space:]]* ]] && printf -v candidate %q "$candidate"
        COMPREPLY+=("$candidate")
    done < <("$program" complete "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _heddle heddle
