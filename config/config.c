#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "config/read.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)

static const json_path root_path;

/* Flags that are no key of the file. */
static const char *const plain_flags[] = {"--config", "--set", "--print-config", "--help"};

void config_default(config *c)
{
    memset(c, 0, sizeof *c);
    server_options_default(&c->server);
    c->repository.load.batch_max = 16;
    c->repository.load.queue_rows_max = 1024;
    c->repository.load.sequence_max = 512;
    c->repository.models = c->model_list;
    c->scheduler.fallback = FALLBACK_WHEN_SOONER;
    c->devices[0] = "cpu";
    c->device_count = 1;
    c->device_start_timeout_ns = 60000000000u;
    c->log_level = LOG_INFO;
}

void config_dispose(config *c)
{
    arena_dispose(&c->memory);
    memset(c, 0, sizeof *c);
}

static status read_file(config *c, const char *path, const char **text, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    size_t used = 0, room = 4096;
    char *buffer = NULL;
    status s = STATUS_OK;
    for (;;) {
        char *larger = realloc(buffer, room);
        if (larger == NULL) {
            s = status_fail(STATUS_OUT_OF_MEMORY, "%s: no memory", path);
            goto done;
        }
        buffer = larger;
        used += fread(buffer + used, 1, room - used, file);
        if (used < room)
            break;
        if (room >= FILE_BYTES_MAX) {
            s = status_fail(STATUS_TOO_LARGE, "%s: over %zu bytes", path, FILE_BYTES_MAX);
            goto done;
        }
        room *= 2;
    }
    if (ferror(file)) {
        s = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
        goto done;
    }
    *text = arena_copy_string(&c->memory, buffer, used);
    *bytes = used;
    if (*text == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "%s: no memory", path);
done:
    free(buffer);
    fclose(file);
    return s;
}

/* The argument of a flag as the JSON value that a file would hold. NULL: no such value. */
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
    repository_model_options *ignored;
    if (equals == NULL || equals == argument || equals[1] == 0)
        return config_wrong(o, &root_path, "\"%s\" is not NAME=PATH", argument);
    return config_add_model(c, argument, (size_t)(equals - argument), equals + 1, o, &root_path,
                            &ignored);
}

static status apply_key(config *c, const config_key *k, const char *argument, config_origin *o)
{
    if (k->kind == CONFIG_MODELS)
        return apply_model(c, argument, o);
    json_t *value = value_of_argument(k, argument);
    if (value == NULL)
        return config_wrong(o, &root_path, "is not UTF-8");
    status s = config_set(c, k, value, o, &root_path);
    json_decref(value);
    return s;
}

/* --set section.key=VALUE, where VALUE is JSON, or else taken as a string. */
static status apply_set(config *c, const char *argument, config_origin *o)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument)
        return config_wrong(o, &root_path, "\"%s\" is not KEY=VALUE", argument);
    char path[128], flag[160];
    snprintf(path, sizeof path, "%.*s", (int)(equals - argument), argument);
    snprintf(flag, sizeof flag, "--set %s", path);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (value == NULL)
        value = json_string(equals + 1);
    o->flag = flag;
    status s = value != NULL ? config_set_path(c, path, value, o)
                             : config_wrong(o, &root_path, "is not UTF-8");
    json_decref(value);
    return s;
}

static status unknown_flag(const char *flag)
{
    const char *names[128];
    size_t count = 0;
    for (size_t i = 0; i < sizeof plain_flags / sizeof *plain_flags; i++)
        names[count++] = plain_flags[i];
    for (int i = 0; i < config_key_count && count < 128; i++)
        if (config_keys[i].flag != NULL)
            names[count++] = config_keys[i].flag;
    if (flag[0] != '-')
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "\"%s\" is no flag; models are given by --model NAME=PATH", flag);
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

/* One walk over the flags. First for --config, --help and --print-config alone, then for the keys:
 * the file comes before every flag, wherever it stands on the line. */
static status walk_flags(config *c, int argc, char *const *argv, bool is_first_walk)
{
    config_origin o = {0};
    for (int i = 0; i < argc; i++) {
        char flag[64];
        const char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
        snprintf(flag, sizeof flag, "%.*s",
                 (int)(equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i])), argv[i]);
        const char *argument = equals != NULL ? equals + 1 : NULL;
        const config_key *k = key_of_flag(flag);
        if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
            c->wants_help = true;
            continue;
        }
        if (strcmp(flag, "--print-config") == 0) {
            c->wants_print = true;
            continue;
        }
        bool is_config = strcmp(flag, "--config") == 0, is_set = strcmp(flag, "--set") == 0;
        if (k == NULL && !is_config && !is_set)
            return unknown_flag(flag);
        if (argument == NULL && k != NULL && k->kind == CONFIG_BOOL)
            argument = "true";
        if (argument == NULL && i + 1 < argc)
            argument = argv[++i];
        if (argument == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "%s: needs a value", flag);
        o.flag = flag;
        status s = STATUS_OK;
        if (is_first_walk)
            c->file = is_config ? argument : c->file;
        else if (is_set)
            s = apply_set(c, argument, &o);
        else if (k != NULL)
            s = apply_key(c, k, argument, &o);
        if (s)
            return s;
    }
    return STATUS_OK;
}

/* What no single key can tell. */
static status check_whole(const config *c)
{
    if (c->server.listener_count == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "server.listen, server.listen_tls: no address to listen on");
    bool has_certificate = c->server.tls.certificate_file != NULL,
         has_key = c->server.tls.key_file != NULL;
    if (has_certificate != has_key)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "tls.%s is missing: a certificate and its key "
                           "come together",
                           has_certificate ? "key_file" : "certificate_file");
    for (int i = 0; i < c->server.listener_count; i++)
        if (c->server.listeners[i].is_tls && !has_certificate)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "server.listen_tls: needs tls.certificate_file and tls.key_file "
                               "(--tls-certificate, --tls-key)");
    if (c->repository.folder == NULL && c->repository.model_count == 0 && !c->wants_print)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "nothing to serve: give --repository DIR or "
                           "--model NAME=PATH, or the keys repository or models of the file");
    return STATUS_OK;
}

status config_load(config *c, int argc, char *const *argv)
{
    config_default(c);
    status s = walk_flags(c, argc, argv, true);
    if (s)
        goto fail;
    if (c->wants_help)
        return STATUS_OK;
    if (c->file != NULL) {
        const char *text = NULL;
        size_t bytes = 0;
        s = read_file(c, c->file, &text, &bytes);
        if (s)
            goto fail;
        s = config_read_text(c, c->file, text, bytes);
        if (s)
            goto fail;
    }
    s = walk_flags(c, argc, argv, false);
    if (s)
        goto fail;
    s = check_whole(c);
    if (s)
        goto fail;
    return STATUS_OK;
fail:
    config_dispose(c);
    return s;
}
