#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/access/table.h"
#include "tests/support/temporary.h"

/* SHA-256 of "abc" (FIPS 180-4, example) and of "". */
#define OF_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char root[TEMPORARY_FOLDER_BYTES], path[200];

static status read(const char *text, access_table **out)
{
    static server_options o;
    server_options_default(&o);
    o.tenants[0] = (server_tenant){.name = "gold", .key = "s3cret", .weight = 1};
    o.tenants[1] = (server_tenant){.name = "team", .weight = 1};
    o.tenant_count = 2;
    temporary_make(root);
    snprintf(path, sizeof path, "%s/keys", root);
    if (text != NULL) {
        temporary_write_text(root, "keys", text);
        o.keys_file = path;
    }
    status failure = access_table_create(&o, out);
    temporary_remove(root);
    return failure;
}

Test(access_table, keys_certificates_and_tenants_are_found)
{
    access_table *t;
    access_hasher *h = access_hasher_create();
    cr_assert_eq(read("# comment\n\nci sha256:" OF_ABC " infer,read models=digits,mini* # more\r\n"
                      "ops cert:ops.example admin tenant=team",
                      &t),
                 STATUS_OK, "%s", status_message());
    cr_assert(t->is_enforced);
    const access_identity *ci = access_find_key(t, h, "abc", 3);
    cr_assert_str_eq(ci->name, "ci");
    cr_assert_eq(ci->rights, ACCESS_INFER | ACCESS_READ);
    cr_assert(access_may_run(ci, "digits", 6));
    cr_assert(access_may_run(ci, "minilm", 6));
    cr_assert_not(access_may_run(ci, "digit", 5));
    cr_assert_not(access_may_run(ci, "digits2", 7));
    cr_assert_null(access_find_key(t, h, "abcd", 4));
    cr_assert_null(access_find_key(t, h, "ab", 2));
    cr_assert_null(access_find_key(t, h, "", 0));
    const access_identity *gold = access_find_key(t, h, "s3cret", 6);
    cr_assert_eq(gold->tenant, 1);
    cr_assert_eq(gold->rights, ACCESS_INFER);
    cr_assert(access_may_run(gold, "anything", 8));
    const access_identity *ops = access_find_certificate(t, "ops.example");
    cr_assert_eq(ops->rights, ACCESS_ADMIN);
    cr_assert_eq(ops->tenant, 2);
    cr_assert_null(access_find_certificate(t, "ci"));
    access_table_release(t);

    cr_assert_eq(read(NULL, &t), STATUS_OK);
    cr_assert_not(t->is_enforced);
    cr_assert_eq(t->count, 1);
    access_table_release(t);
    access_hasher_destroy(h);
}

Test(access_table, what_is_wrong_is_named_by_its_line)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"ci", "keys:1: a line is"},
        {"\nci sha256:12 infer", "keys:2: after sha256:"},
        {"ci secret infer", "keys:1: the second word"},
        {"ci cert: infer", "keys:1: the second word"},
        {"ci sha256:" OF_ABC " infr", "did you mean \"infer\""},
        {"ci sha256:" OF_ABC " infer,", "is no right"},
        {"ci sha256:" OF_ABC " infer tenant=none", "no tenant \"none\""},
        {"ci sha256:" OF_ABC " infer models=a,,b", "names no model"},
        {"ci sha256:" OF_ABC " infer more", "neither models= nor tenant="},
        {"a sha256:" OF_ABC " infer\nb sha256:" OF_ABC " read", "keys:2: b has the key"},
        {"a cert:x infer\nb cert:x read", "keys:2: b has the key or certificate of a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        access_table *t;
        cr_assert_eq(read(cases[i].text, &t), STATUS_INVALID_ARGUMENT, "%s", cases[i].text);
        cr_assert(strstr(status_message(), cases[i].words), "%s", status_message());
    }
}

Test(access_digest, is_sha_256)
{
    unsigned char digest[ACCESS_DIGEST_BYTES], other[ACCESS_DIGEST_BYTES];
    char hex[ACCESS_DIGEST_HEX_BYTES];
    access_hasher *h = access_hasher_create();
    for (int i = 0; i < 2; i++) {
        cr_assert(access_digest(h, "abc", 3, digest));
        access_digest_write(digest, hex);
        cr_assert_str_eq(hex, OF_ABC);
        cr_assert(access_digest(h, "", 0, digest));
        access_digest_write(digest, hex);
        cr_assert_str_eq(hex, OF_NOTHING);
    }
    cr_assert(access_digest_read(OF_NOTHING, 64, other));
    cr_assert(access_digest_is_same(digest, other));
    other[31] ^= 1;
    cr_assert_not(access_digest_is_same(digest, other));
    cr_assert_not(access_digest_read(OF_NOTHING, 63, other));
    cr_assert_not(access_digest_read("x" OF_NOTHING, 64, other));
    access_hasher_destroy(h);
}
