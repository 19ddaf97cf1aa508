#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include <stdio.h>

#include "config/config.h"

/* All of `c` as JSON that config_load() accepts again, once the masked keys of tenants are put back
 * (CONFIG_MASKED_KEY). */
status config_print(const config *c, FILE *out) MUST_CHECK;

/* `penstock serve --help`. */
void config_print_help(FILE *out);

/* The table of docs/configuration.md, as Markdown: every key with range, default and meaning. */
void config_print_reference(FILE *out);

#endif
