#include "cli/flags.h"

#include <stdlib.h>

status command_read_precision(const char *text, device_precision *out)
{
    return device_precision_from_name(text, out)
               ? STATUS_OK
               : status_fail(STATUS_INVALID_ARGUMENT,
                             "--precision wants fp32, bf16 or int8, not \"%s\"", text);
}

/* False: no number in those bounds, or something behind it. */
static bool read_number(const char *text, double least, double most, double *out)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != 0 || !(number >= least && number <= most))
        return false;
    *out = number;
    return true;
}

status command_read_number(const char *flag, const char *text, double least, double most,
                           double *out)
{
    return read_number(text, least, most, out)
               ? STATUS_OK
               : status_fail(STATUS_INVALID_ARGUMENT,
                             "%s wants a number from %.10g to %.10g, not \"%s\"", flag, least, most,
                             text);
}

status command_read_whole(const char *flag, const char *text, int least, int most, int *out)
{
    double number;
    if (!read_number(text, least, most, &number) || number != (int)number)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s wants a whole number from %d to %d, not \"%s\"", flag, least, most,
                           text);
    *out = (int)number;
    return STATUS_OK;
}
