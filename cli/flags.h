#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include "devices/device.h"

/* Values of flags of the subcommands that do not serve. STATUS_INVALID_ARGUMENT names the flag
 * ("--threads") and what it takes, and leaves `out` untouched. */

/* "fp32", "bf16" or "int8", of --precision. */
status command_read_precision(const char *text, device_precision *out) MUST_CHECK;
status command_read_number(const char *flag, const char *text, double least, double most,
                           double *out) MUST_CHECK;
status command_read_whole(const char *flag, const char *text, int least, int most,
                          int *out) MUST_CHECK;

#endif
