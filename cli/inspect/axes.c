#include "cli/inspect/axes.h"

#include <string.h>

#include "base/text/wrap.h"
#include "models/whole/free_sizes.h"
#include "server/protocol/text/text_write.h"

#define NAME_COLUMNS 24

/* Those that were tried at load, else as the file has them. False: there are none to tell of. */
static bool find_axes(const model *m, arena *memory, free_sizes *out)
{
    if (m->on_device.exported != NULL || strcmp(m->platform, "onnx") != 0)
        return false;
    if (m->whole_sizes == NULL)
        return free_sizes_list(m->graph, memory, out) == STATUS_OK && out->count > 0;
    *out = *m->whole_sizes;
    return out->count > 0;
}

static const char *kind_of(const model *m, const free_size *axis)
{
    if (axis->is_batch)
        return "rows";
    return axis->is_sequence && !model_is_whole(m) ? "tokens" : "size";
}

/* As in the shapes of the inputs. */
static const char *title_of(const model *m, const free_size *axis)
{
    if (model_is_whole(m))
        return axis->name;
    return axis->is_batch ? "batch" : axis->is_sequence ? "sequence" : axis->name;
}

/* Whether all of "x[0], y[0]" are dim 0 of their inputs. */
static bool are_all_at(const char *places, const char *dim)
{
    for (const char *at = strchr(places, ']'); at != NULL; at = strchr(at + 1, ']'))
        if ((at[1] == 0 || at[1] == ',') && strncmp(at + 1 - strlen(dim), dim, strlen(dim)) != 0)
            return false;
    return true;
}

/* "rows (an open first dim; \"N\" in the file)". */
static void put_role(text_buffer *line, const model *m, const free_size *axis)
{
    const char *kind = kind_of(m, axis);
    bool are_rows = strcmp(kind, "rows") == 0;
    if (strcmp(kind, "size") == 0)
        return;
    text_buffer_put(line, are_rows ? "rows (an open first dim" : "tokens (an open second dim");
    if (!are_all_at(axis->places, are_rows ? "[0]" : "[1]"))
        text_buffer_put(line, ", elsewhere by its name");
    if (axis->is_named && strcmp(title_of(m, axis), axis->name) != 0)
        text_buffer_format(line, "; \"%s\" in the file", axis->name);
    text_buffer_put(line, ")");
}

static void put_size(text_buffer *line, const model *m, const free_size *axis, arena *memory)
{
    const char *size = axis->is_batch ? "" : free_size_text(axis, memory);
    if (m->graph->is_dynamic && !axis->is_batch)
        text_buffer_put(line, "a size, not tried, as shapes depend on values");
    if (size != NULL && size[0] != 0)
        text_buffer_format(line, "%s%s", size, strcmp(size, "any") == 0 ? " size" : "");
    if (!axis->is_batch && strcmp(kind_of(m, axis), "size") == 0 && axis->is_named &&
        strchr(axis->places, ',') != NULL)
        text_buffer_put(line, ", one size by its name");
    if (axis->refusal != NULL)
        text_buffer_format(line, "; %lld does not fit: %s", (long long)axis->refused,
                           axis->refusal);
}

static void print_axis(const model *m, const free_size *axis, arena *memory, text_buffer *line)
{
    const char *title = title_of(m, axis);
    bool is_long = strlen(title) > NAME_COLUMNS;
    text_buffer_clear(line);
    if (strcmp(title, axis->places) != 0)
        text_buffer_format(line, "%s: ", axis->places);
    put_role(line, m, axis);
    put_size(line, m, axis, memory);
    printf("  %-*s%s", NAME_COLUMNS, title, is_long ? "\n                           " : " ");
    wrap_print(stdout, text_buffer_string(line), NAME_COLUMNS + 3);
}

void inspect_axes_print(const model *m)
{
    free_sizes axes;
    arena memory = {0};
    text_buffer line = {0};
    bool has_any = find_axes(m, &memory, &axes);
    if (has_any)
        printf("axes      left open by the file\n");
    for (int i = 0; has_any && i < axes.count; i++)
        print_axis(m, &axes.sizes[i], &memory, &line);
    text_buffer_dispose(&line);
    arena_dispose(&memory);
}

static void json_string(text_buffer *out, const char *key, const char *text)
{
    text_buffer_format(out, ",\"%s\":", key);
    if (text != NULL)
        text_write_json_string(out, text, strlen(text));
    else
        text_buffer_put(out, "null");
}

/* "x[2], mask[1]" as a list. */
static void json_places(text_buffer *out, const char *places)
{
    text_buffer_put(out, ",\"dims\":[");
    for (const char *at = places, *comma; at != NULL; at = comma != NULL ? comma + 2 : NULL) {
        comma = strstr(at, "], ");
        comma = comma != NULL ? comma + 1 : NULL;
        text_buffer_put(out, at == places ? "" : ",");
        text_write_json_string(out, at, comma != NULL ? (size_t)(comma - at) : strlen(at));
    }
    text_buffer_put(out, "]");
}

static void json_axis(text_buffer *out, const model *m, const free_size *axis, arena *memory)
{
    const char *size = free_size_text(axis, memory);
    text_buffer_put(out, "{\"name\":");
    text_write_json_string(out, title_of(m, axis), strlen(title_of(m, axis)));
    json_string(out, "kind", kind_of(m, axis));
    json_string(out, "name_in_file", axis->is_named ? axis->name : NULL);
    json_places(out, axis->places);
    json_string(out, "accepted", size != NULL && size[0] != 0 ? size : NULL);
    if (axis->step >= 0)
        text_buffer_format(out, ",\"least\":%lld,\"step\":%lld", (long long)axis->least,
                           (long long)axis->step);
    json_string(out, "refusal", axis->refusal);
    if (axis->refusal != NULL)
        text_buffer_format(out, ",\"refused\":%lld", (long long)axis->refused);
    text_buffer_put(out, "}");
}

void inspect_axes_json(const model *m, text_buffer *out)
{
    free_sizes axes;
    arena memory = {0};
    text_buffer_put(out, ",\"axes\":[");
    if (find_axes(m, &memory, &axes))
        for (int i = 0; i < axes.count; i++) {
            text_buffer_put(out, i > 0 ? "," : "");
            json_axis(out, m, &axes.sizes[i], &memory);
        }
    text_buffer_put(out, "]");
    arena_dispose(&memory);
}
