#include "config/flags.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/keys.h"
#include "config/load.h"
#include "tests/support/temporary.h"

Test(config_flags, every_integer_key_refuses_what_is_out_of_its_range)
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

Test(config_flags, flags_override_the_file_wherever_they_stand)
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

Test(config_flags, wrong_flags_are_named)
{
    static const struct {
        const char *argv[4], *message;
    } cases[] = {
        {{"--lisen", "x:1"}, "--lisen: unknown flag; did you mean --listen?"},
        {{"--threads", "x"}, "--threads: must be an integer, not a string"},
        {{"--threads"}, "--threads: needs a value"},
        {{"models"}, "\"models\" is not a flag; to serve a model, give --model NAME=PATH"},
        {{"--model", "a"}, "--model: \"a\" is not NAME=PATH"},
        {{"--set", "drain.dely_ms=0"},
         "--set drain.dely_ms: unknown key; did you mean \"delay_ms\"?"},
        {{"--set", "limits.bodybytes=0"},
         "--set limits.bodybytes: unknown key; did you mean \"body_bytes_max\"?"},
        {{"--model", "a=b", "--model", "a=c"}, "--model: model \"a\" is given twice"},
        {{"--config", "/nowhere.json"}, "/nowhere.json: No such file or directory"},
        {{"--model", "a=b", "--listen-tls", ":1"},
         "server.listen_tls, server.grpc_tls: need tls.certificate_file and tls.key_file "
         "(--tls-certificate, "
         "--tls-key)"},
        {{"--model", "a=b", "--tls-key", "k"},
         "tls.certificate_file is missing: a certificate and its key go together"},
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
