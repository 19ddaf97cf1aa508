#include "config/config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_position.h"
#include "base/nearest.h"
#include "config/keys.h"
#include "tests/support/temporary.h"

/* Everything the table describes: reading, refusing, printing and reading again. */

static const char *message_of_text(const char *text)
{
    static config c;
    config_default(&c);
    status s = config_read_text(&c, "p.json", text, strlen(text));
    config_dispose(&c);
    return s == STATUS_INVALID_ARGUMENT ? status_message() : s ? "another status" : "";
}

Test(config, wrong_files_are_named_by_line_path_and_nearest_name)
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
        {"{\n\"drain\": 5}", "p.json:2: drain: must be an object, and is an integer"},
        {"{\"drain\":\n{\"delay_ms\": -1}}",
         "p.json:2: drain.delay_ms: -1 is less than the least value, 0"},
        {"{\"limits\": {\"json_depth_max\": 5000}}",
         "p.json:1: limits.json_depth_max: 5000 is more than the greatest value, 1024"},
        {"{\"limits\": {\"json_depth_max\": 5.5}}",
         "p.json:1: limits.json_depth_max: must be an integer, and is a number with a fraction"},
        {"{\"limits\": {\"json_depth_max\": \"5\"}}",
         "p.json:1: limits.json_depth_max: must be an integer, and is a string"},
        {"{\"precision\": \"int9\"}",
         "p.json:1: precision: \"int9\" is none of fp32, bf16, int8; did you mean \"int8\"?"},
        {"{\"server\": {\"listen\": [\n\"a:1\",\n\"b\"]}}",
         "p.json:3: server.listen[1]: \"b\" is not HOST:PORT, such as 127.0.0.1:8080"},
        {"{\"server\": {\"listen\": [\"a:70000\"]}}",
         "p.json:1: server.listen[0]: \"a:70000\": the port is more than 65535"},
        {"{\"server\": {\"listen\": [\"::1:80\"]}}",
         "p.json:1: server.listen[0]: \"::1:80\": an IPv6 address stands in brackets, as "
         "[::1]:8080"},
        {"{\"server\": {\"status_page\": 1}}",
         "p.json:1: server.status_page: must be true or false, and is an integer"},
        {"{\"models\": {\"a.b\": {\"path\": \"x\",\n\"precison\": \"int8\"}}}",
         "p.json:2: models[\"a.b\"].precison: unknown key; did you mean \"precision\"?"},
        {"{\"models\": {\"m\": {}}}", "p.json:1: models.m: the key \"path\" is missing"},
        {"{\"models\": {\"a/b\": \"x\"}}",
         "p.json:1: models[\"a/b\"]: \"a/b\" is no model name: 1 to 127 printable characters "
         "without / ? # % : \" \\ and spaces"},
        {"{\"devices\": [\"gpu\"]}",
         "p.json:1: devices[0]: \"gpu\" is no device: cpu, or pjrt: and the plugin's path"},
        {"{\"devices\": [\"cpu\", \"cpu\"]}", "p.json:1: devices[1]: \"cpu\" stands there twice"},
        {"{\"repository\": \"\"}", "p.json:1: repository: is empty"},
        {"[]", "p.json:1: must be an object, and is an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(message_of_text(cases[i].text), cases[i].message, "%s", cases[i].text);
}

Test(config, what_is_not_json_is_refused_with_its_place)
{
    static const char *const texts[] = {"{\"a\": 1,}",        "",     "{",
                                        "{\"a\":1, \"a\":2}", "{} x", "nul"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_eq(strncmp(message_of_text(texts[i]), "p.json:1:", 9), 0, "%s: %s", texts[i],
                     message_of_text(texts[i]));
}

Test(config, every_integer_key_refuses_what_is_out_of_its_range)
{
    for (int i = 0; i < config_key_count; i++) {
        const config_key *k = &config_keys[i];
        static config c;
        char flag[200];
        if (k->kind != CONFIG_INTEGER)
            continue;
        const int64_t values[] = {k->minimum, k->maximum, k->minimum - 1, k->maximum + 1};
        for (int j = 0; j < 4; j++) {
            snprintf(flag, sizeof flag, "%s=%lld", k->path, (long long)values[j]);
            char *argv[] = {"--set", flag, "--print-config"};
            status s = config_load(&c, 3, argv);
            cr_expect_eq(s, j < 2 ? STATUS_OK : STATUS_INVALID_ARGUMENT, "%s", flag);
            if (!s) {
                cr_expect_eq(config_key_get_integer(&c, k), values[j], "%s", flag);
                config_dispose(&c);
            }
        }
    }
}

static char *printed(const config *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_eq(config_print(c, out), STATUS_OK);
    fclose(out);
    return text;
}

Test(config, what_is_printed_is_read_again_as_the_same)
{
    static config c, again;
    char *argv[] = {"--model",
                    "digits=examples/models/digits",
                    "--model=b=c=d",
                    "--listen",
                    "[::1]:0",
                    "--listen",
                    "*:81",
                    "--listen-tls",
                    ":8443",
                    "--tls-key",
                    "k.pem",
                    "--tls-certificate",
                    "c.pem",
                    "--precision",
                    "int8",
                    "--threads",
                    "3",
                    "--set",
                    "batching.queue_delay_us=250",
                    "--device",
                    "pjrt:/x.so",
                    "--require-device",
                    "--set",
                    "models={\"e\":{\"path\":\"f\",\"precision\":\"bf16\"}}"};
    cr_assert_eq(config_load(&c, sizeof argv / sizeof *argv, argv), STATUS_OK, "%s",
                 status_message());
    cr_expect_eq(c.repository.model_count, 3);
    cr_expect_str_eq(c.repository.models[1].path, "c=d");
    cr_expect(c.repository.models[2].has_precision);
    cr_expect_eq(c.repository.models[2].precision, DEVICE_BF16);
    cr_expect_eq(c.repository.load.queue_delay_ns, 250000);
    cr_expect_eq(c.cpu_threads, 3);
    cr_expect_eq(c.server.listener_count, 3);
    cr_expect_str_eq(c.server.listeners[0].host, "::1");
    cr_expect(c.server.listeners[2].is_tls);
    cr_expect_eq(c.device_count, 1);
    char *first = printed(&c);
    config_default(&again);
    cr_assert_eq(config_read_text(&again, "printed", first, strlen(first)), STATUS_OK, "%s",
                 status_message());
    char *second = printed(&again);
    cr_expect_str_eq(first, second);
    free(first);
    free(second);
    config_dispose(&c);
    config_dispose(&again);
}

Test(config, flags_override_the_file_wherever_they_stand)
{
    char folder[TEMPORARY_FOLDER_BYTES], path[TEMPORARY_FOLDER_BYTES + 16];
    temporary_make(folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    temporary_write_text(folder, "config.json",
                         "{\"precision\": \"bf16\", \"models\": {\"a\": \"x\"}, \"cpu\": "
                         "{\"threads\": 5},\n \"server\": {\"listen\": [\"a:1\", \"b:2\"]}}");
    static config c;
    char *argv[] = {"--precision", "int8", "--listen", "c:3", "--config", path, "--model", "a=y"};
    cr_assert_eq(config_load(&c, 8, argv), STATUS_OK, "%s", status_message());
    cr_expect_eq(c.repository.load.precision, DEVICE_INT8);
    cr_expect_eq(c.cpu_threads, 5);
    cr_expect_eq(c.server.listener_count, 1);
    cr_expect_str_eq(c.server.listeners[0].host, "c");
    cr_expect_eq(c.repository.model_count, 1);
    cr_expect_str_eq(c.repository.models[0].path, "y");
    config_dispose(&c);
    temporary_remove(folder);
}

Test(config, wrong_flags_are_named)
{
    static const struct {
        const char *argv[4], *message;
    } cases[] = {
        {{"--lisen", "x:1"}, "--lisen: unknown flag; did you mean --listen?"},
        {{"--threads", "x"}, "--threads: must be an integer, and is a string"},
        {{"--threads"}, "--threads: needs a value"},
        {{"models"}, "\"models\" is no flag; models are given by --model NAME=PATH"},
        {{"--model", "a"}, "--model: \"a\" is not NAME=PATH"},
        {{"--set", "drain.dely_ms=0"},
         "--set drain.dely_ms: unknown key; did you mean \"delay_ms\"?"},
        {{"--set", "limits.bodybytes=0"},
         "--set limits.bodybytes: unknown key; did you mean \"body_bytes_max\"?"},
        {{"--model", "a=b", "--model", "a=c"}, "--model: model \"a\" is given twice"},
        {{"--config", "/nowhere.json"}, "/nowhere.json: No such file or directory"},
        {{"--model", "a=b", "--listen-tls", ":1"},
         "server.listen_tls: needs tls.certificate_file and tls.key_file (--tls-certificate, "
         "--tls-key)"},
        {{"--model", "a=b", "--tls-key", "k"},
         "tls.certificate_file is missing: a certificate and its key come together"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static config c;
        int argc = 0;
        while (argc < 4 && cases[i].argv[argc] != NULL)
            argc++;
        cr_expect_neq(config_load(&c, argc, (char *const *)cases[i].argv), STATUS_OK);
        cr_expect_str_eq(status_message(), cases[i].message);
    }
    static config c;
    cr_expect_eq(config_load(&c, 0, NULL), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(strncmp(status_message(), "nothing to serve", 16), 0);
}

Test(config, help_names_every_flag_once)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    config_print_help(out);
    fclose(out);
    for (int i = 0; i < config_key_count; i++) {
        char flag[64];
        if (config_keys[i].flag == NULL)
            continue;
        snprintf(flag, sizeof flag, "\n  %s ", config_keys[i].flag);
        const char *first = strstr(text, flag);
        cr_assert_not_null(first, "%s", config_keys[i].flag);
        cr_expect_null(strstr(first + 1, flag), "%s", config_keys[i].flag);
    }
    for (const char *line = text; *line != 0; line = strchr(line, '\n') + 1)
        cr_expect_leq(strcspn(line, "\n"), 100);
    free(text);
}

#define BEGIN_MARK "<!-- reference: made by tests/unit/config, see docs/testing.md -->\n"
#define END_MARK "<!-- end of reference -->"

/* The page holds the table as the code prints it. PENSTOCK_UPDATE=1 writes it anew. */
Test(config, the_configuration_page_is_up_to_date)
{
    char *reference = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&reference, &bytes);
    config_print_reference(out);
    fclose(out);

    static char page[200000];
    FILE *file = fopen(PENSTOCK_SOURCE_DIR "/docs/configuration.md", "r");
    cr_assert_not_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    char *begin = strstr(page, BEGIN_MARK), *end = strstr(page, END_MARK);
    cr_assert(begin != NULL && end != NULL);
    begin += strlen(BEGIN_MARK);
    if (getenv("PENSTOCK_UPDATE") != NULL) {
        file = fopen(PENSTOCK_SOURCE_DIR "/docs/configuration.md", "w");
        fprintf(file, "%.*s%s%s", (int)(begin - page), page, reference, end);
        fclose(file);
    } else {
        cr_expect(strlen(reference) == (size_t)(end - begin) &&
                      memcmp(reference, begin, (size_t)(end - begin)) == 0,
                  "run it with PENSTOCK_UPDATE=1");
    }
    free(reference);
}

Test(nearest, distances)
{
    cr_expect_eq(nearest_distance("", "abc"), 3);
    cr_expect_eq(nearest_distance("kitten", "sitting"), 3);
    cr_expect_eq(nearest_distance("depht", "depth"), 1);
    cr_expect_eq(nearest_distance("same", "same"), 0);
    static const char *const words[] = {"ab", "repository", "precision"};
    cr_expect_str_eq(nearest_find("repo_sitory", words, 3), "repository");
    cr_expect_null(nearest_find("xy", words, 3));
    cr_expect_null(nearest_find("unrelated", words, 3));
}

Test(position, lines_are_those_of_keys_and_elements)
{
    const char *text = "{\n"
                       "  \"a\": [1, \"]},\\\"{\",\n"
                       "    {\"b\":\n"
                       "  2, \"c\" : 3}],\n"
                       "  \"d\": {\"e\": null}\n"
                       "}";
    json_path root = {0}, a = {&root, "a", 0}, a1 = {&a, NULL, 1}, a2 = {&a, NULL, 2},
              b = {&a2, "b", 0}, c = {&a2, "c", 0}, d = {&root, "d", 0}, e = {&d, "e", 0},
              missing = {&a2, "zzz", 0};
    size_t bytes = strlen(text);
    cr_expect_eq(json_position_line(text, bytes, &a), 2);
    cr_expect_eq(json_position_line(text, bytes, &a1), 2);
    cr_expect_eq(json_position_line(text, bytes, &b), 3);
    cr_expect_eq(json_position_line(text, bytes, &c), 4);
    cr_expect_eq(json_position_line(text, bytes, &e), 5);
    cr_expect_eq(json_position_line(text, bytes, &missing), 3);
}
