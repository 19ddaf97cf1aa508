#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "config/config.h"

/* The table of every key of the configuration. Reading, --help, --print-config and
 * docs/configuration.md follow from it. */

typedef enum config_kind {
    CONFIG_BOOL,
    CONFIG_INTEGER,
    CONFIG_NUMBER,    /* a double */
    CONFIG_STRING,    /* or null */
    CONFIG_CHOICE,    /* one string of a list; the field is an enum that counts from 0 */
    CONFIG_DEVICES,   /* array of strings */
    CONFIG_LISTENERS, /* array of "HOST:PORT"; `minimum` is a config_listener_kind */
    CONFIG_TENANTS,   /* object: name -> {"key": ..., "weight": ...} */
    CONFIG_READINESS, /* a word or an array of model names */
    CONFIG_MODELS,    /* object: name -> {"path": ..., "precision": ...} */
} config_kind;

typedef struct config_key {
    const char *path; /* "limits.json_depth_max": at most one dot */
    config_kind kind;
    size_t offset;      /* of the field in `config` */
    size_t field_bytes; /* 4 or 8 for integers and enums */
    int64_t scale;      /* field = value in the file * scale; 1000 for us kept as ns */
    int64_t minimum, maximum;
    const char *const *choices; /* ends with NULL */
    const char *flag;           /* "--threads"; NULL: the file and --set only */
    const char *argument;       /* the flag's value as --help names it */
    const char *help;           /* one sentence */
} config_key;

extern const config_key config_keys[];
extern const int config_key_count;

/* The key at that path, or NULL. */
const config_key *config_key_find(const char *path);

int64_t config_key_get_integer(const config *c, const config_key *k);
void config_key_set_integer(config *c, const config_key *k, int64_t value);
double *config_key_number(const config *c, const config_key *k);
bool *config_key_bool(const config *c, const config_key *k);
const char **config_key_string(const config *c, const config_key *k);

#endif
