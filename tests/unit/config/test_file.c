#include "config/file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *message_of_text(const char *text)
{
    static config c;
    config_default(&c);
    status s = config_read_text(&c, "p.json", text, strlen(text));
    config_dispose(&c);
    return s == STATUS_INVALID_ARGUMENT ? status_message() : s ? "another status" : "";
}

Test(config_file, wrong_files_are_named_by_line_path_and_nearest_name)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\n  \"limits\": {\n    \"json_depht_max\": 3\n  }\n}",
         "p.json:3: limits.json_depht_max: unknown key; did you mean \"json_depth_max\"?"},
        {"{\"limit\": {}}", "p.json:1: limit: unknown key; did you mean \"limits\"?"},
        {"{\"delay_ms\": 1}", "p.json:1: delay_ms: unknown key; did you mean \"drain.delay_ms\"?"},
        {"{\"xyzzy\": 1}", "p.json:1: xyzzy: unknown key"},
        {"{\"limits.json_depth_max\": 4}",
         "p.json:1: [\"limits.json_depth_max\"]: unknown key; did you mean "
         "\"limits.json_depth_max\"?"},
        {"{\n\"drain\": 5}", "p.json:2: drain: must be an object, not an integer"},
        {"{\"drain\":\n{\"delay_ms\": -1}}",
         "p.json:2: drain.delay_ms: -1 is below the minimum, 0"},
        {"{\"limits\": {\"json_depth_max\": 5000}}",
         "p.json:1: limits.json_depth_max: 5000 is above the maximum, 1024"},
        {"{\"limits\": {\"json_depth_max\": 5.5}}",
         "p.json:1: limits.json_depth_max: must be an integer, not a number with a fraction"},
        {"{\"limits\": {\"json_depth_max\": \"5\"}}",
         "p.json:1: limits.json_depth_max: must be an integer, not a string"},
        {"{\"precision\": \"int9\"}",
         "p.json:1: precision: \"int9\" is not one of fp32, bf16, int8; did you mean \"int8\"?"},
        {"{\"server\": {\"listen\": [\n\"a:1\",\n\"b\"]}}",
         "p.json:3: server.listen[1]: \"b\" is not HOST:PORT, such as 127.0.0.1:8080"},
        {"{\"server\": {\"listen\": [\"a:70000\"]}}",
         "p.json:1: server.listen[0]: \"a:70000\": the port is above 65535"},
        {"{\"server\": {\"listen\": [\"::1:80\"]}}",
         "p.json:1: server.listen[0]: \"::1:80\": put the IPv6 address in brackets: "
         "[::1]:8080"},
        {"{\"server\": {\"status_page\": 1}}",
         "p.json:1: server.status_page: must be true or false, not an integer"},
        {"{\"models\": {\"a.b\": {\"path\": \"x\",\n\"precison\": \"int8\"}}}",
         "p.json:2: models[\"a.b\"].precison: unknown key; did you mean \"precision\"?"},
        {"{\"models\": {\"m\": {}}}", "p.json:1: models.m: the key \"path\" is missing"},
        {"{\"models\": {\"a/b\": \"x\"}}",
         "p.json:1: models[\"a/b\"]: \"a/b\" is not a model name: use 1 to 127 printable "
         "ASCII characters without spaces and / ? # % : \" \\"},
        {"{\"devices\": [\"gpu\"]}",
         "p.json:1: devices[0]: \"gpu\" is not a device: use cpu or pjrt:PLUGIN.so"},
        {"{\"devices\": [\"cpu\", \"cpu\"]}", "p.json:1: devices[1]: \"cpu\" is listed twice"},
        {"{\"repository\": \"\"}", "p.json:1: repository: must not be empty"},
        {"{\"tenants\": {\"a\": {\"key\": \"k\"}, \"b\": {\"key\": \"k\"}}}",
         "p.json:1: tenants.b.key: is the key of tenant \"a\", too"},
        {"{\"tenants\": {\"a\": {\"key\": \"(masked)\"}}}",
         "p.json:1: tenants.a.key: is what --print-config prints in place of a key"},
        {"{\"tenants\": {\"a\": {\"key\": \"\"}}}", "p.json:1: tenants.a.key: must not be empty"},
        {"{\"tenants\": {\"default\": {\"key\": \"k\"}}}",
         "p.json:1: tenants.default.key: unknown key"},
        {"{\"readiness\": \"al\"}",
         "p.json:1: readiness: \"al\" is not one of all, started, any; did you mean \"all\"?"},
        {"{\"readiness\": []}", "p.json:1: readiness: must name 1 to 256 models"},
        {"{\"readiness\": [1]}", "p.json:1: readiness[0]: must be a model's name, not an integer"},
        {"{\"repository\": 7}", "p.json:1: repository: must be a string or null, not an integer"},
        {"{\"repository\": {\"pol_s\": 1}}",
         "p.json:1: repository.pol_s: unknown key; did you mean \"poll_s\"?"},
        {"[]", "p.json:1: must be an object, not an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(message_of_text(cases[i].text), cases[i].message, "%s", cases[i].text);
}

Test(config_file, what_is_not_json_is_refused_with_its_place)
{
    static const char *const texts[] = {"{\"a\": 1,}",        "",     "{",
                                        "{\"a\":1, \"a\":2}", "{} x", "nul"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_eq(strncmp(message_of_text(texts[i]), "p.json:1:", 9), 0, "%s: %s", texts[i],
                     message_of_text(texts[i]));
}

Test(config_file, the_repository_is_a_folder_or_a_section)
{
    static const char *const texts[] = {
        "{\"repository\": \"/m\", \"readiness\": [\"a\", \"b\"]}",
        "{\"repository\": {\"folder\": \"/m\"}, \"readiness\": [\"a\", \"b\"]}"};
    for (size_t i = 0; i < 2; i++) {
        static config c;
        config_default(&c);
        cr_assert_eq(c.repository.readiness.kind, READINESS_STARTED);
        cr_assert_eq(config_read_text(&c, "f", texts[i], strlen(texts[i])), STATUS_OK, "%s",
                     status_message());
        cr_expect_str_eq(c.repository.folder, "/m");
        cr_expect_eq(c.repository.readiness.kind, READINESS_LIST);
        cr_expect_eq(c.repository.readiness.name_count, 2);
        cr_expect_str_eq(c.repository.readiness.names[1], "b");
        config_dispose(&c);
    }
}

/* Who leaves the key out gains nothing by it, unless the file says otherwise. */
Test(config_file, the_default_tenant_has_the_smallest_quotas_of_the_others)
{
    static const struct {
        const char *tenants;
        int64_t requests_per_s, tokens_per_s;
        uint32_t weight;
    } cases[] = {
        {"{}", 0, 0, 1},
        {"{\"a\": {}, \"b\": {\"weight\": 7}}", 0, 0, 1},
        {"{\"a\": {\"requests_per_s\": 9}, \"b\": {}, \"c\": {\"requests_per_s\": 5}}", 5, 0, 1},
        {"{\"a\": {\"tokens_per_s\": 9}, \"b\": {\"requests_per_s\": 5}}", 5, 9, 1},
        {"{\"a\": {\"requests_per_s\": 9}, \"default\": {}}", 0, 0, 1},
        {"{\"default\": {\"requests_per_s\": 3, \"weight\": 2}}", 3, 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static config c;
        char text[200];
        snprintf(text, sizeof text, "{\"tenants\": %s}", cases[i].tenants);
        config_default(&c);
        cr_assert_eq(config_read_text(&c, "f", text, strlen(text)), STATUS_OK, "%s", text);
        const server_tenant *t = server_tenant_of(&c.server, 0);
        cr_expect_str_eq(t->name, "default");
        cr_expect_null(t->key);
        cr_expect(t->requests_per_s == cases[i].requests_per_s &&
                      t->tokens_per_s == cases[i].tokens_per_s && t->weight == cases[i].weight,
                  "%s", text);
        config_dispose(&c);
    }
}
