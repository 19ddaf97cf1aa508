#include "config/print.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/keys.h"
#include "config/load.h"

static char *printed(const config *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_eq(config_print(c, out), STATUS_OK);
    fclose(out);
    return text;
}

Test(config_print, what_is_printed_is_read_again_as_the_same)
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

static status read(config *c, const char *text)
{
    config_default(c);
    return config_read_text(c, "f", text, strlen(text));
}

Test(config_print, keys_of_tenants_are_masked_and_the_mask_is_no_key)
{
    static config c;
    cr_assert_eq(read(&c, "{\"tenants\": {\"a\": {\"key\": \"s3cret\"}, \"b\": {}}}"), STATUS_OK);
    char *text = printed(&c);
    cr_expect_null(strstr(text, "s3cret"));
    cr_expect_not_null(strstr(text, "\"key\": \"(masked)\""));
    cr_expect_not_null(strstr(text, "\"key\": null"));
    config_dispose(&c);
    cr_expect_eq(read(&c, text), STATUS_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(status_message(), "tenants.a.key"), "%s", status_message());
    config_dispose(&c);
    free(text);
}

Test(config_print, help_names_every_flag_once)
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
Test(config_print, the_configuration_page_is_up_to_date)
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
