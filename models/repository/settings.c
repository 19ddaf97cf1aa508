#include "models/repository/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "models/loading/file_state.h"
#include "models/manifest/triton.h"

static bool has_file(settings_source *out, const char *folder, const char *name)
{
    snprintf(out->path, sizeof out->path, "%s/%s", folder, name);
    return access(out->path, F_OK) == 0;
}

static status read_triton(const served_name *n, bool is_told, settings_source *out)
{
    char unused[TRITON_UNUSED_BYTES];
    status failure = triton_read_file(out->path, &out->text, unused); /* or it stays NULL */
    if (!failure && is_told && unused[0] != 0)
        log_warning("models", "%s: config.pbtxt: not used: %s", n->name, unused);
    return failure;
}

status settings_find(const served_name *n, const char *folder, bool is_told, settings_source *out)
{
    out->text = NULL;
    if (n->config != NULL) {
        snprintf(out->path, sizeof out->path, "%s/config", n->path);
        out->text = strdup(n->config);
        return out->text ? STATUS_OK
                         : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a manifest");
    }
    /* A version's own model.json replaces that of the name. */
    if (has_file(out, folder, "model.json") || has_file(out, n->path, "model.json"))
        return STATUS_OK;
    if (has_file(out, n->path, "config.pbtxt"))
        return read_triton(n, is_told, out);
    snprintf(out->path, sizeof out->path, "%s/model.json", n->path);
    return STATUS_OK;
}

uint64_t settings_state(const served_name *n)
{
    uint64_t state = file_state_add(1, n->path, "model.json");
    state = file_state_add(state, n->path, "config.pbtxt");
    for (const char *c = n->config; c != NULL && *c; c++)
        state = file_state_add_number(state, (unsigned char)*c);
    return state;
}

void settings_read(const served_name *n, manifest *out)
{
    settings_source source = {.text = NULL};
    status failure = settings_find(n, n->path, true, &source);
    /* What is broken leaves the defaults. */
    if (failure)
        failure = manifest_read_text("", "{}", 2, out);
    else if (source.text != NULL)
        failure = manifest_read_text(source.path, source.text, strlen(source.text), out);
    else
        failure = manifest_read(source.path, out);
    (void)failure;
    free(source.text);
}
