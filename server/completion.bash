# Completes options of kldivd: all that --help lists, and files after them.
_kldivd() {
    local current=${COMP_WORDS[COMP_CWORD]}
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(kldivd --help | grep -oE '^  --[a-z0-9-]+')" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}
complete -o filenames -F _kldivd kldivd
