#ifndef CONFIG_FLAGS_H
#define CONFIG_FLAGS_H

#include "config/config.h"

/* The flags of `penstock serve`. `argv` is borrowed. */

/* Checks that every flag exists, and sets c->file, c->wants_help and c->wants_print. */
status config_scan_flags(config *c, int argc, char *const *argv) MUST_CHECK;

/* Sets the key of every flag. To be called after the file was read: flags override it. */
status config_apply_flags(config *c, int argc, char *const *argv) MUST_CHECK;

#endif
