#include "config/keys.h"

#include <assert.h>
#include <string.h>

static const char *const fallbacks[] = {"never", "on_failure", "when_sooner", NULL};
static const char *const packings[] = {"auto", "never", "always", NULL};
static const char *const log_levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const log_formats[] = {"auto", "text", "json", NULL};

/* The choices' order is the enums' order. */
_Static_assert(FALLBACK_NEVER == 0 && FALLBACK_WHEN_SOONER == 2, "fallbacks");
_Static_assert(MODEL_PACKING_AUTO == 0 && MODEL_PACKING_ALWAYS == 2, "packings");
_Static_assert(LOG_DEBUG == 0 && LOG_ERROR == 3, "log_levels");
_Static_assert(LOG_FORMAT_AUTO == 0 && LOG_FORMAT_JSON == 2, "log_formats");

#define FLAG_KEY(path, kind, field, scale, minimum, maximum, choices, flag, argument, help)        \
    {path,                                                                                         \
     CONFIG_##kind,                                                                                \
     offsetof(config, field),                                                                      \
     sizeof(((config *)NULL)->field),                                                              \
     scale,                                                                                        \
     minimum,                                                                                      \
     maximum,                                                                                      \
     choices,                                                                                      \
     flag,                                                                                         \
     argument,                                                                                     \
     help},
#define KEY(path, kind, field, scale, minimum, maximum, choices, help)                             \
    FLAG_KEY(path, kind, field, scale, minimum, maximum, choices, NULL, NULL, help)

const config_key config_keys[] = {
#include "config/keys.inc"
};
const int config_key_count = (int)(sizeof config_keys / sizeof *config_keys);

const config_key *config_key_find(const char *path)
{
    for (int i = 0; i < config_key_count; i++)
        if (strcmp(config_keys[i].path, path) == 0)
            return &config_keys[i];
    return NULL;
}

static void *field_of(const config *c, const config_key *k)
{
    return (char *)(uintptr_t)c + k->offset;
}

int64_t config_key_get_integer(const config *c, const config_key *k)
{
    assert(k->kind == CONFIG_INTEGER || k->kind == CONFIG_CHOICE);
    int64_t value = k->field_bytes == 8 ? *(int64_t *)field_of(c, k) : *(int32_t *)field_of(c, k);
    return value / k->scale;
}

void config_key_set_integer(config *c, const config_key *k, int64_t value)
{
    assert(k->kind == CONFIG_INTEGER || k->kind == CONFIG_CHOICE);
    assert(k->field_bytes == 8 || k->field_bytes == 4);
    if (k->field_bytes == 8)
        *(int64_t *)field_of(c, k) = value * k->scale;
    else
        *(int32_t *)field_of(c, k) = (int32_t)(value * k->scale);
}

double *config_key_number(const config *c, const config_key *k)
{
    assert(k->kind == CONFIG_NUMBER && k->field_bytes == sizeof(double));
    return field_of(c, k);
}

bool *config_key_bool(const config *c, const config_key *k)
{
    assert(k->kind == CONFIG_BOOL && k->field_bytes == sizeof(bool));
    return field_of(c, k);
}

const char **config_key_string(const config *c, const config_key *k)
{
    assert(k->kind == CONFIG_STRING && k->field_bytes == sizeof(char *));
    return field_of(c, k);
}
