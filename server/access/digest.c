#include "server/access/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

struct access_hasher {
    EVP_MD *md;
    EVP_MD_CTX *context;
};

access_hasher *access_hasher_create(void)
{
    return calloc(1, sizeof(access_hasher));
}

bool access_hasher_prepare(access_hasher *h)
{
    if (h->md == NULL)
        h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (h->context == NULL)
        h->context = EVP_MD_CTX_new();
    return h->md != NULL && h->context != NULL;
}

void access_hasher_destroy(access_hasher *h)
{
    if (h == NULL)
        return;
    EVP_MD_CTX_free(h->context);
    EVP_MD_free(h->md);
    free(h);
}

bool access_digest(access_hasher *h, const void *data, size_t bytes,
                   unsigned char out[ACCESS_DIGEST_BYTES])
{
    unsigned int written = 0;
    return access_hasher_prepare(h) && EVP_DigestInit_ex2(h->context, h->md, NULL) == 1 &&
           EVP_DigestUpdate(h->context, data, bytes) == 1 &&
           EVP_DigestFinal_ex(h->context, out, &written) == 1 && written == ACCESS_DIGEST_BYTES;
}

bool access_digest_is_same(const unsigned char *a, const unsigned char *b)
{
    return CRYPTO_memcmp(a, b, ACCESS_DIGEST_BYTES) == 0;
}

void access_digest_write(const unsigned char *digest, char hex[ACCESS_DIGEST_HEX_BYTES])
{
    for (int i = 0; i < ACCESS_DIGEST_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static int value_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool access_digest_read(const char *hex, size_t bytes, unsigned char out[ACCESS_DIGEST_BYTES])
{
    if (bytes != 2 * ACCESS_DIGEST_BYTES)
        return false;
    for (int i = 0; i < ACCESS_DIGEST_BYTES; i++) {
        int high = value_of(hex[2 * i]), low = value_of(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}
