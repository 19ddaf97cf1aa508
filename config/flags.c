#include "config/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "config/models.h"
#include "config/set.h"

#define NAMES_MAX 128

/* Flags that are not keys of the file. */
static const struct plain_flag {
    const char *name;
    bool has_argument;
} plain_flags[] = {{"--config", true},
                   {"--set", true},
                   {"--print-config", false},
                   {"--help", false},
                   {"-h", false}};
#define PLAIN_FLAG_COUNT (sizeof plain_flags / sizeof *plain_flags)

static const struct plain_flag *find_plain(const char *name)
{
    for (size_t i = 0; i < PLAIN_FLAG_COUNT; i++)
        if (strcmp(plain_flags[i].name, name) == 0)
            return &plain_flags[i];
    return NULL;
}

#define NOT_A_VALUE "the value is not UTF-8, or there is no memory for it"

/* The argument of a flag as the JSON value that the file would hold. NULL: NOT_A_VALUE. */
static json_t *value_of_argument(const config_key *k, const char *argument)
{
    if (k->kind == CONFIG_BOOL)
        return strcmp(argument, "true") == 0    ? json_true()
               : strcmp(argument, "false") == 0 ? json_false()
                                                : json_string(argument);
    if (k->kind == CONFIG_INTEGER) {
        char *end;
        errno = 0;
        long long number = strtoll(argument, &end, 10);
        if (errno == 0 && end != argument && *end == 0)
            return json_integer(number);
    }
    return json_string(argument);
}

static status apply_model(config *c, const char *argument, const config_origin *o)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument || equals[1] == 0)
        return config_fail(o, &config_root_path, "\"%s\" is not NAME=PATH", argument);
    return config_add_model(c, argument, (size_t)(equals - argument), equals + 1, NULL, o,
                            &config_root_path);
}

static status apply_key(config *c, const config_key *k, const char *argument, config_origin *o)
{
    if (k->kind == CONFIG_MODELS)
        return apply_model(c, argument, o);
    json_t *value = value_of_argument(k, argument);
    if (value == NULL)
        return config_fail(o, &config_root_path, NOT_A_VALUE);
    status s = config_set(c, k, value, o, &config_root_path);
    json_decref(value);
    return s;
}

/* --set section.key=VALUE. VALUE is JSON, or else a string. */
static status apply_set(config *c, const char *argument, config_origin *o)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument)
        return config_fail(o, &config_root_path, "\"%s\" is not KEY=VALUE", argument);
    char path[128], flag[160];
    snprintf(path, sizeof path, "%.*s", (int)(equals - argument), argument);
    snprintf(flag, sizeof flag, "--set %s", path);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL)
        value = json_string(equals + 1);
    o->flag = flag;
    status s = value != NULL ? config_set_path(c, path, value, o)
                             : config_fail(o, &config_root_path, NOT_A_VALUE);
    json_decref(value);
    return s;
}

static status unknown_flag(const char *flag)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < PLAIN_FLAG_COUNT; i++)
        names[count++] = plain_flags[i].name;
    for (int i = 0; i < config_key_count && count < NAMES_MAX; i++)
        if (config_keys[i].flag != NULL)
            names[count++] = config_keys[i].flag;
    if (flag[0] != '-')
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "\"%s\" is not a flag; to serve a model, give --model NAME=PATH", flag);
    const char *near = nearest_find(flag, names, count);
    return status_fail(STATUS_INVALID_ARGUMENT, "%s: unknown flag%s%s%s", flag,
                       near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                       near != NULL ? "?" : " (--help lists them)");
}

static const config_key *key_of_flag(const char *flag)
{
    for (int i = 0; i < config_key_count; i++)
        if (config_keys[i].flag != NULL && strcmp(config_keys[i].flag, flag) == 0)
            return &config_keys[i];
    return NULL;
}

/* One flag of the command line. `key` is NULL for the flags that are not keys. */
typedef struct flag {
    char name[64];
    const char *argument;
    const config_key *key;
} flag;

/* Reads the flag at argv[*i] and its argument, and moves *i to the last word it used. */
static status read_flag(int argc, char *const *argv, int *i, flag *out)
{
    const char *text = argv[*i];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    snprintf(out->name, sizeof out->name, "%.*s",
             equals != NULL ? (int)(equals - text) : (int)strlen(text), text);
    out->argument = equals != NULL ? equals + 1 : NULL;
    out->key = key_of_flag(out->name);
    const struct plain_flag *plain = find_plain(out->name);
    if (plain == NULL && out->key == NULL)
        return unknown_flag(out->name);
    if (plain != NULL && !plain->has_argument)
        return STATUS_OK;
    if (out->argument == NULL && out->key != NULL && out->key->kind == CONFIG_BOOL)
        out->argument = "true";
    if (out->argument == NULL && *i + 1 < argc)
        out->argument = argv[++*i];
    if (out->argument == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: needs a value", out->name);
    return STATUS_OK;
}

status config_scan_flags(config *c, int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        flag f;
        status s = read_flag(argc, argv, &i, &f);
        if (s)
            return s;
        if (strcmp(f.name, "--config") == 0)
            c->file = f.argument;
        c->wants_help |= strcmp(f.name, "--help") == 0 || strcmp(f.name, "-h") == 0;
        c->wants_print |= strcmp(f.name, "--print-config") == 0;
    }
    return STATUS_OK;
}

status config_apply_flags(config *c, int argc, char *const *argv)
{
    config_origin o = {0};
    for (int i = 0; i < argc; i++) {
        flag f;
        status s = read_flag(argc, argv, &i, &f);
        o.flag = f.name;
        if (!s && strcmp(f.name, "--set") == 0)
            s = apply_set(c, f.argument, &o);
        else if (!s && f.key != NULL)
            s = apply_key(c, f.key, f.argument, &o);
        if (s)
            return s;
    }
    return STATUS_OK;
}
