#include "text/load/score.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest digits that round to `x`, as files have them: digits times ten to *exponent. */
static double shortest_digits(double x, int *exponent)
{
    char text[40];
    uint64_t digits = 0;
    for (int precision = 14; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, x); /* d.ddde-xx */
        *exponent = -precision;
        if (strtod(text, NULL) == x)
            break;
    }
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.')
            digits = digits * 10 + (uint64_t)(*p - '0');
    }
    *exponent += atoi(p + 1);
    for (; digits % 10 == 0; digits /= 10)
        ++*exponent;
    return (double)digits;
}

double score_as_read(double exact)
{
    int exponent = 0;
    if (exact == 0 || !isfinite(exact))
        return exact;
    double read = shortest_digits(fabs(exact), &exponent);
    for (; exponent < -308; exponent += 308)
        read /= 1e308;
    /* Powers of ten are correctly rounded there: pow() is not always. */
    char power[16];
    snprintf(power, sizeof power, "1e%d", abs(exponent));
    read = exponent < 0 ? read / strtod(power, NULL) : read * strtod(power, NULL);
    return exact < 0 ? -read : read;
}
