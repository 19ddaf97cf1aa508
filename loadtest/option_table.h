#ifndef LOADTEST_OPTION_TABLE_H
#define LOADTEST_OPTION_TABLE_H

#include "loadtest/options.h"

/* Reads the flag at argv[*i], which begins with "--", into its field of `o`, and moves *i to the
 * last word that it used. STATUS_INVALID_ARGUMENT names the flag; of an unknown one, the nearest.
 */
status option_table_read(options *o, int argc, char **argv, int *i) MUST_CHECK;

#endif
