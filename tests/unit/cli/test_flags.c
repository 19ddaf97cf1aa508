#include "cli/flags.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    const char *file, *operand;
    bool is_json;
    int count;
    double seconds;
    device_precision precision;
    flag_list sizes;
} values;

/* Parses `line` (words with one space between them) for a command with a flag of every kind. */
static int parse(values *v, const char *line)
{
    static char words[256];
    char *argv[16] = {"try"};
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    *v = (values){.count = 7};
    const flag flags[] = {
        flag_required(flag_text("--file", "FILE", "A file.", &v->file)),
        flag_switch("--json", "JSON.", &v->is_json),
        flag_integer("--count", "N", "A count.", &v->count, 1, 64),
        flag_number("--seconds", "S", "Seconds.", &v->seconds, 0.5, 10),
        flag_precision("A precision.", &v->precision),
        flag_integers("--sizes", "Sizes.", &v->sizes, 100),
    };
    const flags_usage usage = {.command = "try",
                               .synopsis = "MODEL [OPTION...]",
                               .description = "Tries flags.",
                               .flags = flags,
                               .count = sizeof flags / sizeof *flags,
                               .operand = &v->operand};
    return flags_parse(&usage, argc, argv);
}

Test(flags, every_kind_is_read)
{
    values v;
    cr_assert_eq(parse(&v, "--file f --json --count=3 m --seconds 0.5 --precision int8 --sizes "
                           "1,8,100"),
                 FLAGS_OK);
    cr_expect_str_eq(v.file, "f");
    cr_expect_str_eq(v.operand, "m");
    cr_expect(v.is_json);
    cr_expect_eq(v.count, 3);
    cr_expect_eq(v.seconds, 0.5);
    cr_expect_eq(v.precision, DEVICE_INT8);
    cr_expect_eq(v.sizes.count, 3);
    cr_expect_eq(v.sizes.values[2], 100);
}

Test(flags, what_is_not_given_keeps_its_value)
{
    values v;
    cr_assert_eq(parse(&v, "--file -"), FLAGS_OK);
    cr_expect_str_eq(v.file, "-");
    cr_expect_eq(v.count, 7);
    cr_expect_null(v.operand);
    cr_expect_eq(v.sizes.count, 0);
}

Test(flags, every_error_names_the_flag_and_what_it_takes, .init = cr_redirect_stderr)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "--file FILE is missing"},
        {"--file", "--file needs a value"},
        {"--fiel f", "unknown flag --fiel; did you mean --file?"},
        {"--xyzzy", "unknown flag --xyzzy"},
        {"-x", "unknown flag -x"},
        {"--json=1", "--json takes no value"},
        {"--count 0", "--count: \"0\" is not a whole number from 1 to 64"},
        {"--count 2.5", "--count: \"2.5\" is not a whole number from 1 to 64"},
        {"--count 65", "--count: \"65\" is not a whole number from 1 to 64"},
        {"--count 3x", "--count: \"3x\" is not a whole number from 1 to 64"},
        {"--seconds nan", "--seconds: \"nan\" is not a number from 0.5 to 10"},
        {"--precision fp8", "--precision: \"fp8\" is not one of fp32, bf16, int8"},
        {"--sizes 1,0", "--sizes: \"1,0\" is not a list of up to 32 whole numbers from 1 to 100, "
                        "such as 1,8,32"},
        {"--sizes 1;2", "--sizes: \"1;2\" is not a list of up to 32 whole numbers from 1 to 100, "
                        "such as 1,8,32"},
        {"--file f a b", "unexpected argument \"b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        values v;
        cr_expect_eq(parse(&v, cases[i].line), 2, "%s", cases[i].line);
        cr_expect_str_eq(status_message(), cases[i].message);
    }
}

Test(flags, help_ends_the_command_well, .init = cr_redirect_stdout)
{
    values v;
    cr_expect_eq(parse(&v, "--json --help --nope"), 0);
}
