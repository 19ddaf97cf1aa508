/* The scanner against the C library. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "server/protocol/text/number_scan.h"

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    return xorshift64_next(&state);
}

static bool scan(const char *text, number *out)
{
    const char *end = text + strlen(text);
    return number_scan(text, end, out) == end;
}

Test(number_scan, scanning_rounds_as_the_library_does)
{
    for (int i = 0; i < 500000; i++) {
        char text[64], *p = text;
        int digits = 1 + (int)(draw() % 25);
        number n;
        for (int d = 0; d < digits; d++) {
            *p++ = (char)('0' + (d == 0 ? 1 + draw() % 9 : draw() % 10));
            if (d == 0 && digits > 1)
                *p++ = '.';
        }
        sprintf(p, "e%d", (int)(draw() % 100) - 50);
        cr_assert(scan(text, &n));
        cr_assert_eq(number_to_f32(&n), strtof(text, NULL), "%s", text);
        cr_assert_eq(number_to_f64(&n), strtod(text, NULL), "%s", text);
    }
}

Test(number_scan, hard_cases)
{
    static const char *const texts[] = {
        "2.2250738585072011e-308", /* the number that hung PHP */
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "9007199254740993",
        "9007199254740992.9999999999999999999999",
        "1e-400",
        "1e400",
        "0.000",
        "-0.0",
        "16777217",
        "16777216.99999999999999999999999",
        "1.17549429e-38",
        "3.4028236e38",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649"
        "017977587207096330286416692887910946555547851940402630657488671505820681908902000708383"
        "676273854845817711531764475730270069855571366959622842914819860834936475292719074168444"
        "365510704342711559699508093042880"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        number n;
        cr_assert(scan(texts[i], &n), "%s", texts[i]);
        cr_assert_eq(number_to_f64(&n), strtod(texts[i], NULL), "%s", texts[i]);
        cr_assert_eq(number_to_f32(&n), strtof(texts[i], NULL), "%s", texts[i]);
    }
}

Test(number_scan, what_json_does_not_allow_is_no_number)
{
    static const char *const texts[] = {"",    "-",   "+1",  ".5",   "1.",      "01",  "-01", "1e",
                                        "1e+", "0x1", "nan", "-NaN", "Infinit", "--1", "1.e5"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        number n;
        cr_assert_not(scan(texts[i], &n), "\"%s\" was taken", texts[i]);
    }
}

Test(number_scan, integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        bool fits_i64, fits_u64;
        int64_t value;
    } cases[] = {{"9223372036854775807", true, true, INT64_MAX},
                 {"9223372036854775808", false, true, INT64_MIN},
                 {"-9223372036854775808", true, false, INT64_MIN},
                 {"-9223372036854775809", false, false, 0},
                 {"18446744073709551615", false, true, -1},
                 {"18446744073709551616", false, false, 0},
                 {"1e3", true, true, 1000},
                 {"2.0", true, true, 2},
                 {"2.5", false, false, 0},
                 {"1e300", false, false, 0},
                 {"-0", true, true, 0},
                 {"NaN", false, false, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        number n;
        int64_t s;
        uint64_t u;
        cr_assert(scan(cases[i].text, &n));
        cr_assert_eq(number_to_i64(&n, &s), cases[i].fits_i64, "%s", cases[i].text);
        cr_assert_eq(number_to_u64(&n, &u), cases[i].fits_u64, "%s", cases[i].text);
        if (cases[i].fits_i64)
            cr_assert_eq(s, cases[i].value);
        if (cases[i].fits_u64)
            cr_assert_eq((int64_t)u, cases[i].value);
    }
}
