#compdef kldivd
# Completes options of kldivd: all that --help lists, and files after them.
local -a options
options=(${${(f)"$(kldivd --help | grep -oE '^  --[a-z0-9-]+')"}## #})
_arguments '*:file:_files' && return
compadd -- $options
