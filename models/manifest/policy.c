#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/manifest/reader.h"

/* The key "version_policy": our words, and Triton's objects (model_config.proto,
 * ModelVersionPolicy). */

static const char what[] = "must be \"all\", \"latest\", \"latest:N\" or a list of versions, or an "
                           "object as Triton has it";

static status set_latest(manifest_reader *r, int64_t count)
{
    if (count < 1 || count > MANIFEST_VERSIONS_MAX)
        return manifest_fail(r, "must be the latest 1 to 64 versions", NULL);
    r->out->policy = (manifest_policy){.kind = POLICY_LATEST, .latest = (int)count};
    return STATUS_OK;
}

static status read_word(manifest_reader *r, const char *word)
{
    char *end;
    if (strcmp(word, "all") == 0) {
        r->out->policy = (manifest_policy){.kind = POLICY_ALL};
        return STATUS_OK;
    }
    if (strcmp(word, "latest") == 0)
        return set_latest(r, 1);
    if (strncmp(word, "latest:", 7) != 0)
        return manifest_fail(r, what, NULL);
    long long count = strtoll(word + 7, &end, 10);
    return *end == 0 && end != word + 7 ? set_latest(r, count) : manifest_fail(r, what, NULL);
}

static status read_version(manifest_reader *r, json_t *v)
{
    manifest_policy *policy = &r->out->policy;
    const char *text = json_string_value(v); /* Triton writes 64-bit integers as strings */
    char *end;
    int64_t version = 0;
    status failure = STATUS_OK;
    if (text != NULL) {
        version = strtoll(text, &end, 10);
        if (*end != 0 || version < 1)
            return manifest_fail(r, "must be a version", NULL);
    } else {
        failure = manifest_read_integer(r, v, 1, INT64_MAX, &version);
    }
    if (!failure)
        policy->versions[policy->count++] = version;
    return failure;
}

static status read_list(manifest_reader *r, json_t *list)
{
    r->out->policy = (manifest_policy){.kind = POLICY_SPECIFIC};
    if (json_array_size(list) == 0)
        return manifest_fail(r, "must name a version", NULL);
    return manifest_read_array(r, list, MANIFEST_VERSIONS_MAX, read_version);
}

static status read_latest_key(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"num_versions"};
    int64_t count = 0;
    if (strcmp(r->at->key, keys[0]) != 0)
        return manifest_fail_key(r, keys, 1);
    status failure = manifest_read_integer(r, v, 1, MANIFEST_VERSIONS_MAX, &count);
    return failure ? failure : set_latest(r, count);
}

static status read_specific_key(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"versions"};
    if (strcmp(r->at->key, keys[0]) != 0)
        return manifest_fail_key(r, keys, 1);
    return json_is_array(v) ? read_list(r, v) : manifest_fail(r, "must be a list", NULL);
}

static status read_kind(manifest_reader *r, json_t *v)
{
    static const char *const keys[] = {"all", "latest", "specific"};
    int64_t count = 0;
    status failure = STATUS_OK;
    if (strcmp(r->at->key, "all") == 0)
        return read_word(r, "all");
    if (strcmp(r->at->key, "latest") == 0) {
        if (json_is_object(v)) {
            failure = set_latest(r, 1);
            return failure ? failure : manifest_read_object(r, v, read_latest_key);
        }
        failure = manifest_read_integer(r, v, 1, MANIFEST_VERSIONS_MAX, &count);
        return failure ? failure : set_latest(r, count);
    }
    if (strcmp(r->at->key, "specific") != 0)
        return manifest_fail_key(r, keys, 3);
    return json_is_array(v) ? read_list(r, v) : manifest_read_object(r, v, read_specific_key);
}

status manifest_read_policy(manifest_reader *r, json_t *v)
{
    if (json_is_string(v))
        return read_word(r, json_string_value(v));
    if (json_is_array(v))
        return read_list(r, v);
    if (json_is_object(v) && json_object_size(v) == 1)
        return manifest_read_object(r, v, read_kind);
    return manifest_fail(r, what, NULL);
}
