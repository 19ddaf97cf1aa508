#include "config/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/wrap.h"
#include "config/keys.h"
#include "config/lists.h"
#include "config/models.h"
#include "config/tenants.h"

/* From the struct and the table to text: --print-config, --help, docs/configuration.md. */

static json_t *listeners_json(const config *c, config_listener_kind kind)
{
    json_t *list = json_array();
    for (int i = 0; i < c->server.listener_count; i++) {
        const server_listener *l = &c->server.listeners[i];
        bool has_colon = strchr(l->host, ':') != NULL;
        if (l->is_tls != (kind == CONFIG_LISTENER_TLS || kind == CONFIG_LISTENER_GRPC_TLS) ||
            l->is_grpc != (kind >= CONFIG_LISTENER_GRPC) ||
            l->is_health != (kind == CONFIG_LISTENER_HEALTH) ||
            l->is_admin != (kind == CONFIG_LISTENER_ADMIN))
            continue;
        if (l->path != NULL)
            json_array_append_new(list, json_sprintf("unix:%s", l->path));
        else
            json_array_append_new(
                list, json_sprintf(has_colon ? "[%s]:%u" : "%s:%u", l->host, (unsigned)l->port));
    }
    return list;
}

static json_t *models_json(const config *c)
{
    json_t *models = json_object();
    for (int i = 0; i < c->repository.model_count; i++) {
        const repository_model_options *m = &c->repository.models[i];
        json_object_set_new(
            models, m->name,
            json_pack("{s:s, s:s?}", "path", m->path, "precision",
                      m->has_precision ? device_precision_names[m->precision] : NULL));
    }
    return models;
}

/* Keys are secrets, and what is printed here ends in logs. */
static json_t *tenants_json(const config *c)
{
    json_t *tenants = json_object();
    const server_tenant *others = &c->server.default_tenant;
    bool is_plain = c->server.tenant_count == 0 && others->weight == 1 &&
                    others->requests_per_s == 0 && others->tokens_per_s == 0;
    for (int i = 0; i <= c->server.tenant_count && !is_plain; i++) {
        const server_tenant *t = server_tenant_of(&c->server, i);
        json_t *entry = json_object();
        if (i > 0)
            json_object_set_new(entry, "key",
                                t->key != NULL ? json_string(CONFIG_MASKED_KEY) : json_null());
        json_object_set_new(entry, "weight", json_integer(t->weight));
        json_object_set_new(entry, "requests_per_s", json_integer(t->requests_per_s));
        json_object_set_new(entry, "tokens_per_s", json_integer(t->tokens_per_s));
        json_object_set_new(tenants, t->name, entry);
    }
    return tenants;
}

static json_t *value_json(const config *c, const config_key *k)
{
    json_t *list;
    switch (k->kind) {
    case CONFIG_BOOL:
        return json_boolean(*config_key_bool(c, k));
    case CONFIG_INTEGER:
        return json_integer(config_key_get_integer(c, k));
    case CONFIG_NUMBER:
        return json_real(*config_key_number(c, k));
    case CONFIG_CHOICE:
        return json_string(k->choices[config_key_get_integer(c, k)]);
    case CONFIG_STRING:
        return *config_key_string(c, k) != NULL ? json_string(*config_key_string(c, k))
                                                : json_null();
    case CONFIG_DEVICES:
        list = json_array();
        for (int i = 0; i < c->device_count; i++)
            json_array_append_new(list, json_string(c->devices[i]));
        return list;
    case CONFIG_LISTENERS:
        return listeners_json(c, (config_listener_kind)k->minimum);
    case CONFIG_TENANTS:
        return tenants_json(c);
    case CONFIG_READINESS:
        return config_readiness_json(c);
    case CONFIG_MODELS:
        return models_json(c);
    }
    return NULL;
}

status config_print(const config *c, FILE *out)
{
    json_t *root = json_object();
    for (int i = 0; i < config_key_count; i++) {
        const config_key *k = &config_keys[i];
        const char *dot = strchr(k->path, '.');
        json_t *parent = root;
        if (dot != NULL) {
            char section[64];
            snprintf(section, sizeof section, "%.*s", (int)(dot - k->path), k->path);
            parent = json_object_get(root, section);
            if (parent == NULL) {
                json_object_set_new(root, section, json_object());
                parent = json_object_get(root, section);
            }
        }
        json_object_set_new(parent, dot != NULL ? dot + 1 : k->path, value_json(c, k));
    }
    int failed = json_dumpf(root, out, JSON_INDENT(2));
    json_decref(root);
    if (failed || fputc('\n', out) == EOF)
        return status_fail(STATUS_IO, "cannot write the configuration");
    return STATUS_OK;
}

static void print_flag(FILE *out, const char *flag, const char *argument, const char *help)
{
    int used = fprintf(out, "  %s%s%s", flag, argument != NULL ? " " : "",
                       argument != NULL ? argument : "");
    if (used > 32)
        fprintf(out, "\n%*s", 34, "");
    else
        fprintf(out, "%*s", 34 - used, "");
    wrap_print(out, help, 34);
}

/* The help of a key, with its default if it has one that says something. */
static void help_with_default(const config *defaults, const config_key *k, char *out, size_t bytes)
{
    json_t *value = value_json(defaults, k);
    bool is_plain = json_is_string(value) || json_is_integer(value);
    const json_t *shown = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    char *text = json_is_string(shown) || is_plain ? json_dumps(shown, JSON_ENCODE_ANY) : NULL;
    size_t length = text != NULL ? strlen(text) : 0;
    bool has_quotes = length >= 2 && text[0] == '"';
    if (text != NULL)
        snprintf(out, bytes, "%s Default: %.*s.", k->help, (int)(has_quotes ? length - 2 : length),
                 has_quotes ? text + 1 : text);
    else
        snprintf(out, bytes, "%s", k->help);
    free(text);
    json_decref(value);
}

void config_print_help(FILE *out)
{
    config defaults;
    config_default(&defaults);
    fputs("usage: penstock serve --model NAME=PATH... [OPTION...]\n"
          "       penstock serve --repository DIR [OPTION...]\n"
          "       penstock serve --config FILE [OPTION...]\n\n"
          "Serves inference requests over HTTP until it receives SIGTERM.\n\n"
          "  penstock serve --model digits=examples/models/digits\n"
          "  penstock serve --config penstock.json --listen '*:8080'\n\n"
          "Flags override the file. A flag marked + can be repeated.\n\n",
          out);
    print_flag(out, "--config", "FILE",
               "Read this JSON file before the flags. Its keys: docs/configuration.md.");
    for (int i = 0; i < config_key_count; i++) {
        const config_key *k = &config_keys[i];
        bool is_list =
            k->kind == CONFIG_DEVICES || k->kind == CONFIG_LISTENERS || k->kind == CONFIG_MODELS;
        char flag[64], argument[128], help[512];
        if (k->flag == NULL)
            continue;
        help_with_default(&defaults, k, help, sizeof help);
        snprintf(flag, sizeof flag, "%s", k->flag);
        snprintf(argument, sizeof argument, "%s%s", k->argument != NULL ? k->argument : "",
                 is_list ? " +" : "");
        if (k->choices != NULL) {
            argument[0] = 0;
            for (int j = 0; k->choices[j] != NULL; j++) {
                size_t used = strlen(argument);
                snprintf(argument + used, sizeof argument - used, "%s%s", j > 0 ? "|" : "",
                         k->choices[j]);
            }
        }
        print_flag(out, flag, argument[0] != 0 ? argument : NULL, help);
    }
    config_dispose(&defaults);
    print_flag(out, "--set", "KEY=VALUE +",
               "Set any key of the file, such as --set drain.delay_ms=0.");
    print_flag(out, "--print-config", NULL,
               "Print the configuration as JSON, with every default, and exit.");
    print_flag(out, "--help", NULL, "Print this help and exit.");
    fputs("\nSignals: SIGTERM finishes the open requests and exits; a second one exits at once.\n"
          "         SIGHUP reads TLS files and keys again, and looks for changed models.\n",
          out);
}

static void print_range(FILE *out, const config_key *k)
{
    switch (k->kind) {
    case CONFIG_BOOL:
        fputs("boolean", out);
        break;
    case CONFIG_INTEGER:
        fprintf(out, "integer, %" PRId64 " to %" PRId64, k->minimum, k->maximum);
        break;
    case CONFIG_NUMBER:
        fprintf(out, "number, %" PRId64 " to %" PRId64, k->minimum, k->maximum);
        break;
    case CONFIG_STRING:
        fputs("string or null", out);
        break;
    case CONFIG_CHOICE:
        for (int i = 0; k->choices[i] != NULL; i++)
            fprintf(out, "%s`%s`", i > 0 ? ", " : "", k->choices[i]);
        break;
    case CONFIG_DEVICES:
        fputs("array of strings", out);
        break;
    case CONFIG_LISTENERS:
        fputs("array of `HOST:PORT`", out);
        break;
    case CONFIG_READINESS:
        fputs("`all`, `started`, `any`, or array of model names", out);
        break;
    case CONFIG_TENANTS:
    case CONFIG_MODELS:
        fputs("object", out);
        break;
    }
}

void config_print_reference(FILE *out)
{
    config c;
    config_default(&c);
    fputs("| key | values | default | flag | meaning |\n| --- | --- | --- | --- | --- |\n", out);
    for (int i = 0; i < config_key_count; i++) {
        const config_key *k = &config_keys[i];
        json_t *value = value_json(&c, k);
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        fprintf(out, "| `%s` | ", k->path);
        print_range(out, k);
        fprintf(out, " | `%s` | %s%s%s | %s |\n", text != NULL ? text : "",
                k->flag != NULL ? "`" : "", k->flag != NULL ? k->flag : "",
                k->flag != NULL ? "`" : "", k->help);
        free(text);
        json_decref(value);
    }
    config_dispose(&c);
}
