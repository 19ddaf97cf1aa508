#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "config/config.h"

/* Defaults, then the file of --config, then the flags, then the checks that need more than one
 * key. `argv` holds the arguments after `penstock serve` and is borrowed as long as `c`. Errors:
 * those of config/file.h and config/flags.h. On failure `c` is disposed. */
status config_load(config *c, int argc, char *const *argv) MUST_CHECK;

#endif
