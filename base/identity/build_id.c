#include "base/identity/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* The note of a segment that holds the id: name, type and descriptor, each padded to 4 bytes (ELF
 * specification, "Note Section"). */
static uint64_t find_in_notes(const char *at, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t whole = sizeof note + name + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (whole > bytes)
            return 0;
        const unsigned char *id = (const unsigned char *)at + sizeof note + name;
        uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
        for (size_t i = 0; i < note.n_descsz; i++)
            hash = (hash ^ id[i]) * UINT64_C(1099511628211);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz > 0)
            return hash;
        at += whole;
        bytes -= whole;
    }
    return 0;
}

/* The program itself is the first object; the others are its libraries. */
static int read_first(struct dl_phdr_info *object, size_t bytes, void *hash)
{
    (void)bytes;
    uint64_t *found = hash;
    for (int i = 0; i < object->dlpi_phnum && *found == 0; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            *found = find_in_notes((const char *)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr,
                                   object->dlpi_phdr[i].p_memsz);
    return 1;
}

uint64_t build_id_hash(void)
{
    uint64_t hash = 0;
    dl_iterate_phdr(read_first, &hash);
    return hash;
}
