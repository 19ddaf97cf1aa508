/* `penstock key`: a new key for a client, and the line of the file of keys that lets it in. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "server/access/digest.h"

#define SECRET_BYTES 32

typedef struct key_options {
    const char *name, *rights, *models, *tenant;
    bool reads_key;
} key_options;

static int fail(const char *what)
{
    fprintf(stderr, "penstock key: %s\n", what);
    return 1;
}

static bool is_word(const char *text)
{
    return text[0] != 0 && text[0] != '#' && strpbrk(text, " \t\r\n") == NULL;
}

/* "psk_" and 256 random bits in hexadecimal. */
static bool make_key(char key[4 + ACCESS_DIGEST_HEX_BYTES])
{
    unsigned char secret[SECRET_BYTES];
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return false;
    memcpy(key, "psk_", 4);
    access_digest_write(secret, key + 4);
    return true;
}

static bool read_key(char *key, size_t bytes)
{
    if (fgets(key, (int)bytes, stdin) == NULL)
        return false;
    key[strcspn(key, "\r\n")] = 0;
    return is_word(key);
}

static int run(const key_options *o)
{
    char key[1024], hex[ACCESS_DIGEST_HEX_BYTES];
    unsigned char digest[ACCESS_DIGEST_BYTES];
    _Static_assert(SECRET_BYTES == ACCESS_DIGEST_BYTES, "written by the same function");
    if (o->reads_key ? !read_key(key, sizeof key) : !make_key(key))
        return fail(o->reads_key ? "standard input holds no key of one word"
                                 : "the system gives no random bytes");
    access_hasher *h = access_hasher_create();
    bool is_done = h != NULL && access_digest(h, key, strlen(key), digest);
    access_hasher_destroy(h);
    if (!is_done)
        return fail("no digest of the key");
    access_digest_write(digest, hex);
    if (!o->reads_key)
        fprintf(stderr, "%s\n", key);
    printf("%s sha256:%s %s%s%s%s%s\n", o->name, hex, o->rights, o->models ? " models=" : "",
           o->models ? o->models : "", o->tenant ? " tenant=" : "", o->tenant ? o->tenant : "");
    return 0;
}

int command_key(int argc, char **argv)
{
    key_options o = {.rights = "infer"};
    const flag flags[] = {
        flag_text("--rights", "R,R",
                  "What it may do: infer (run models), read (metadata, statistics, metrics), admin "
                  "(load and unload). Default: infer.",
                  &o.rights),
        flag_text("--models", "NAME,NAME",
                  "The models that it may run; NAME* is all that begin so. Default: all.",
                  &o.models),
        flag_text("--tenant", "NAME", "The tenant whose share and quota it has.", &o.tenant),
        flag_switch("--stdin", "Read the key from standard input instead of making one.",
                    &o.reads_key),
    };
    const flags_usage usage = {
        .command = "key",
        .synopsis = "NAME [OPTION...] >> FILE",
        .description = "Makes a key for a client. The key goes to standard error, once; the line "
                       "for the file of keys (penstock serve --keys FILE), which holds its SHA-256 "
                       "only, goes to standard output.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags,
        .operand = &o.name,
        .epilogue = "After a change, SIGHUP makes the server read the file again."};
    int code = flags_parse(&usage, argc, argv);
    if (code != FLAGS_OK)
        return code;
    if (o.name == NULL || !is_word(o.name) || !is_word(o.rights) ||
        (o.models != NULL && !is_word(o.models)) || (o.tenant != NULL && !is_word(o.tenant)))
        return fail("NAME, rights, models and tenant are words without spaces"), 2;
    return run(&o);
}
