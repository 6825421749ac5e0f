/* Files that the server writes, which must be no files that it needs. */
#pragma once

#include "server/config/options.h"

/* False, with one line on `errors`, if a file that is to be written is the store or one beside it, or a file that another
 * option names: it would be cut, or have lines in it. */
bool srv_written_files_check(const struct srv_options *options, FILE *errors);
