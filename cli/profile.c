/* `penstock profile`: what an accelerator of a running server does, by its plugin's profiler, as
 * files that TensorBoard's profile plugin opens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/file_writer.h"
#include "base/io/folders.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/http_post.h"

typedef struct profile_options {
    const char *url, *out, *device, *key_file;
    int seconds;
} profile_options;

static int fail(const char *what)
{
    fprintf(stderr, "penstock profile: %s\n", what);
    return 1;
}

/* The first word of the file. */
static status read_key(const char *path, char key[512])
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return status_fail(STATUS_IO, "%s: %m", path);
    bool has_key = fscanf(file, "%511s", key) == 1;
    fclose(file);
    return has_key ? STATUS_OK : status_fail(STATUS_INVALID_ARGUMENT, "%s: holds no key", path);
}

/* As TensorBoard looks for it: OUT/plugins/profile/RUN/HOST.xplane.pb. */
static status write_profile(const profile_options *o, const http_target *to,
                            const http_answer *answer)
{
    char folder[4000], path[4096], run[40], host[256];
    const file_part all = {answer->data, answer->bytes};
    time_t now = (time_t)(clock_wall_ns() / 1000000000u);
    struct tm local;
    localtime_r(&now, &local);
    strftime(run, sizeof run, "%Y_%m_%d_%H_%M_%S", &local);
    snprintf(host, sizeof host, "%s", to->port[0] != 0 ? to->host : "localhost");
    for (char *at = host; *at != 0; at++)
        if (strchr("/[]:", *at) != NULL)
            *at = '_';
    if (snprintf(folder, sizeof folder, "%s/plugins/profile/%s", o->out, run) >=
            (int)sizeof folder ||
        snprintf(path, sizeof path, "%s/%s.xplane.pb", folder, host) >= (int)sizeof path)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: too long", o->out);
    status s = folders_make(folder, 0777);
    if (s)
        return s;
    s = file_writer_write(path, &all, 1);
    if (s)
        unlink(path);
    else
        printf("%s: %zu bytes\nopen it with: tensorboard --logdir %s\n", path, answer->bytes,
               o->out);
    return s;
}

static status run(const profile_options *o)
{
    http_target to;
    http_answer answer;
    char key[512], body[256], quoted[100] = "";
    if (o->device != NULL && strlen(o->device) + strlen(",\"device\":\"\"") < sizeof quoted &&
        strpbrk(o->device, "\"\\") == NULL)
        snprintf(quoted, sizeof quoted, ",\"device\":\"%s\"", o->device);
    else if (o->device != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: no name of a device", o->device);
    status s = http_target_read(o->url, &to);
    if (s == STATUS_OK && o->key_file != NULL)
        s = read_key(o->key_file, key);
    if (s)
        return s;
    snprintf(body, sizeof body, "{\"seconds\":%d%s}", o->seconds, quoted);
    s = http_post(&to, "/v2/profile", o->key_file != NULL ? key : NULL, body, &answer);
    if (s)
        return s;
    if (answer.code == 200)
        s = write_profile(o, &to, &answer);
    else
        s = status_fail(STATUS_UNAVAILABLE, "code %d: %.500s", answer.code, answer.data);
    free(answer.data);
    return s;
}

int command_profile(int argc, char **argv)
{
    profile_options o = {.out = "profile", .seconds = 3};
    const flag flags[] = {
        flag_integer("--seconds", "N", "How long to record: 1 to 60. Default: 3.", &o.seconds, 1,
                     60),
        flag_text("--out", "DIR", "Where to write, for tensorboard --logdir. Default: profile.",
                  &o.out),
        flag_text("--device", "NAME", "pjrt:1, for example. Default: the first one.", &o.device),
        flag_text("--key-file", "FILE", "A file with the key to send.", &o.key_file),
    };
    const flags_usage usage = {
        .command = "profile",
        .synopsis = "URL [OPTION...]",
        .description = "Records what an accelerator of a running server does, with its plugin's "
                       "profiler, and writes it as TensorBoard's profile plugin reads it. Needs "
                       "the right admin. URL: http://HOST:PORT or unix:PATH.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags,
        .operand = &o.url};
    int code = flags_parse(&usage, argc, argv);
    if (code != FLAGS_OK)
        return code;
    if (o.url == NULL) {
        fail("URL is missing; see penstock profile --help");
        return 2;
    }
    return run(&o) ? fail(status_message()) : 0;
}
