#include "cli/flags.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "base/text/wrap.h"

#define NAMES_MAX 32
#define EXIT_STATUS_USAGE 2

static status set_precision(const flag *f, const char *text)
{
    if (device_precision_from_name(text, f->out))
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "%s: \"%s\" is not one of fp32, bf16, int8",
                       f->name, text);
}

static bool read_number(const flag *f, const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == 0 && *out >= f->minimum && *out <= f->maximum;
}

static status set_number(const flag *f, const char *text)
{
    double number;
    if (!read_number(f, text, &number))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s: \"%s\" is not a number from %.10g to %.10g", f->name, text,
                           f->minimum, f->maximum);
    *(double *)f->out = number;
    return STATUS_OK;
}

static status set_integer(const flag *f, const char *text)
{
    double number;
    if (!read_number(f, text, &number) || number != (int)number)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s: \"%s\" is not a whole number from %.0f to %.0f", f->name, text,
                           f->minimum, f->maximum);
    *(int *)f->out = (int)number;
    return STATUS_OK;
}

static status set_list(const flag *f, const char *text)
{
    flag_list list = {.count = 0};
    for (const char *at = text; *at != 0;) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || (double)n < f->minimum || (double)n > f->maximum ||
            (*end != ',' && *end != 0) || list.count == FLAG_LIST_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "%s: \"%s\" is not a list of up to %d whole numbers from %.0f to "
                               "%.0f, such as 1,8,32",
                               f->name, text, FLAG_LIST_MAX, f->minimum, f->maximum);
        list.values[list.count++] = n;
        at = *end == ',' ? end + 1 : end;
    }
    *(flag_list *)f->out = list;
    return STATUS_OK;
}

static status set(const flag *f, const char *text)
{
    switch (f->kind) {
    case FLAG_SWITCH:
        *(bool *)f->out = true;
        return STATUS_OK;
    case FLAG_TEXT:
        *(const char **)f->out = text;
        return STATUS_OK;
    case FLAG_INTEGER:
        return set_integer(f, text);
    case FLAG_NUMBER:
        return set_number(f, text);
    case FLAG_PRECISION:
        return set_precision(f, text);
    case FLAG_LIST:
        return set_list(f, text);
    }
    return STATUS_INTERNAL;
}

static const flag *find(const flags_usage *u, const char *name, size_t bytes)
{
    for (int i = 0; i < u->count; i++)
        if (strlen(u->flags[i].name) == bytes && memcmp(u->flags[i].name, name, bytes) == 0)
            return &u->flags[i];
    return NULL;
}

static status unknown_flag(const flags_usage *u, const char *text)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (int i = 0; i < u->count && count < NAMES_MAX; i++)
        names[count++] = u->flags[i].name;
    const char *near = nearest_find(text, names, count);
    return status_fail(STATUS_INVALID_ARGUMENT, "unknown flag %s%s%s%s", text,
                       near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                       near != NULL ? "?" : "");
}

/* Reads the flag at argv[*i] and moves *i to the last word that it used. */
static status read_flag(const flags_usage *u, int argc, char **argv, int *i, bool *is_given)
{
    const char *text = argv[*i], *equals = strchr(text, '=');
    const flag *f = find(u, text, equals != NULL ? (size_t)(equals - text) : strlen(text));
    if (f == NULL)
        return unknown_flag(u, text);
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (f->kind == FLAG_SWITCH && value != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s takes no value", f->name);
    if (f->kind != FLAG_SWITCH && value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (f->kind != FLAG_SWITCH && value == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s needs a value", f->name);
    is_given[f - u->flags] = true;
    return set(f, value);
}

static status read_all(const flags_usage *u, int argc, char **argv, bool *wants_help)
{
    bool is_given[NAMES_MAX] = {false};
    assert(u->count <= NAMES_MAX);
    for (int i = 1; i < argc; i++) {
        status s = STATUS_OK;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *wants_help = true;
            return STATUS_OK;
        }
        if (argv[i][0] == '-' && argv[i][1] != 0)
            s = read_flag(u, argc, argv, &i, is_given);
        else if (u->operand == NULL || *u->operand != NULL)
            s = status_fail(STATUS_INVALID_ARGUMENT, "unexpected argument \"%s\"", argv[i]);
        else
            *u->operand = argv[i];
        if (s)
            return s;
    }
    for (int i = 0; i < u->count; i++)
        if (u->flags[i].is_required && !is_given[i])
            return status_fail(STATUS_INVALID_ARGUMENT, "%s %s is missing", u->flags[i].name,
                               u->flags[i].argument);
    return STATUS_OK;
}

int flags_parse(const flags_usage *u, int argc, char **argv)
{
    bool wants_help = false;
    if (read_all(u, argc, argv, &wants_help))
        return flags_fail(u);
    if (!wants_help)
        return FLAGS_OK;
    flags_print_help(u, stdout);
    return 0;
}

int flags_fail(const flags_usage *u)
{
    fprintf(stderr, "penstock %s: %s\nSee penstock %s --help.\n", u->command, status_message(),
            u->command);
    return EXIT_STATUS_USAGE;
}

static int flag_width(const flag *f)
{
    return (int)(strlen(f->name) + (f->argument != NULL ? 1 + strlen(f->argument) : 0));
}

static void print_flag(const flag *f, int column, FILE *out)
{
    fprintf(out, "  %s%s%s%*s", f->name, f->argument != NULL ? " " : "",
            f->argument != NULL ? f->argument : "", column - 2 - flag_width(f), "");
    wrap_print(out, f->help, column);
}

void flags_print_help(const flags_usage *u, FILE *out)
{
    const flag help = {.name = "--help", .help = "Print this help and exit."};
    int column = 0;
    for (int i = 0; i < u->count; i++)
        column = flag_width(&u->flags[i]) > column ? flag_width(&u->flags[i]) : column;
    column += 4;
    fprintf(out, "usage: penstock %s %s\n\n", u->command, u->synopsis);
    wrap_print(out, u->description, 0);
    fputc('\n', out);
    for (int i = 0; i < u->count; i++)
        print_flag(&u->flags[i], column, out);
    print_flag(&help, column, out);
    if (u->epilogue != NULL) {
        fputc('\n', out);
        wrap_print(out, u->epilogue, 0);
    }
}
