#include "base/io/file_reader.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file_map.h"

static char path[] = "/tmp/penstock-unit-XXXXXX";
static unsigned char *wanted;
enum { BYTES = 5 * 1048576 + 77 }; /* several pieces and a part of one */

static void make_file(void)
{
    wanted = malloc(BYTES);
    for (int i = 0; i < BYTES; i++)
        wanted[i] = (unsigned char)(i * 2654435761u >> 13);
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, wanted, BYTES), BYTES);
    close(fd);
}

static void remove_file(void)
{
    unlink(path);
    free(wanted);
}

TestSuite(file_reader, .init = make_file, .fini = remove_file);

static void read_ranges(file_reader_way way)
{
    int fd;
    uint64_t bytes;
    cr_assert_eq(file_reader_open(path, &fd, &bytes), STATUS_OK);
    cr_assert_eq(bytes, BYTES);
    file_range ranges[100];
    for (int i = 0; i < 100; i++) {
        uint64_t offset = (uint64_t)i * 48611;
        size_t length = i == 0 ? BYTES : (size_t)i * 40000 % (BYTES - offset);
        ranges[i] = (file_range){fd, offset, length, malloc(length + 1)};
        ((unsigned char *)ranges[i].data)[length] = 0xa5;
    }
    cr_assert_eq(file_reader_read_by(way, ranges, 100), STATUS_OK);
    for (int i = 0; i < 100; i++) {
        unsigned char *data = ranges[i].data;
        cr_assert_eq(memcmp(data, wanted + ranges[i].offset, ranges[i].bytes), 0, "range %d", i);
        cr_assert_eq(data[ranges[i].bytes], 0xa5, "range %d was overrun", i);
        free(data);
    }
    close(fd);
}

Test(file_reader, reads_many_ranges_through_pread)
{
    read_ranges(FILE_READER_PREAD);
}

Test(file_reader, reads_many_ranges_through_io_uring)
{
    if (file_reader_chosen_way() != FILE_READER_IO_URING)
        cr_skip_test("io_uring is forbidden here");
    read_ranges(FILE_READER_IO_URING);
}

static void read_past_the_end(file_reader_way way)
{
    int fd;
    uint64_t bytes;
    unsigned char room[128];
    cr_assert_eq(file_reader_open(path, &fd, &bytes), STATUS_OK);
    file_range ranges[] = {{fd, 0, 64, room}, {fd, BYTES - 10, 64, room + 64}};
    cr_assert_eq(file_reader_read_by(way, ranges, 2), STATUS_CORRUPT);
    cr_assert(strstr(status_message(), "ends at byte") != NULL);
    file_range bad = {-1, 0, 64, room};
    cr_assert_eq(file_reader_read_by(way, &bad, 1), STATUS_IO);
    cr_assert_eq(file_reader_read_by(way, NULL, 0), STATUS_OK);
    close(fd);
}

Test(file_reader, says_when_a_file_is_cut_short)
{
    read_past_the_end(FILE_READER_PREAD);
    read_past_the_end(FILE_READER_IO_URING);
}

Test(file_reader, the_environment_forces_pread)
{
    setenv("PENSTOCK_IO", "pread", 1);
    cr_assert_eq(file_reader_chosen_way(), FILE_READER_PREAD);
}

Test(file_reader, reads_whole_files_with_a_zero_after_them)
{
    void *data;
    size_t bytes;
    cr_assert_eq(file_reader_read_whole(path, BYTES, &data, &bytes), STATUS_OK);
    cr_assert_eq(bytes, BYTES);
    cr_assert_eq(memcmp(data, wanted, BYTES), 0);
    cr_assert_eq(((char *)data)[BYTES], 0);
    cr_assert_eq((uintptr_t)data % 64, 0);
    free(data);
    cr_assert_eq(file_reader_read_whole(path, BYTES - 1, &data, &bytes), STATUS_TOO_LARGE);
    cr_assert_eq(file_reader_read_whole("/nowhere/at/all", 10, &data, &bytes), STATUS_NOT_FOUND);
    cr_assert_eq(file_reader_read_whole("/tmp", 10, &data, &bytes), STATUS_IO);
    cr_assert_eq(truncate(path, 0), 0);
    cr_assert_eq(file_reader_read_whole(path, 0, &data, &bytes), STATUS_OK);
    cr_assert_eq(bytes, 0);
    free(data);
}

Test(file_reader, does_not_hang_on_a_fifo)
{
    void *data;
    size_t bytes;
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(file_reader_read_whole(path, 10, &data, &bytes), STATUS_IO);
}

Test(file_reader, maps_a_file_read_only)
{
    file_map map = {0};
    cr_assert_eq(file_map_open(&map, path, BYTES), STATUS_OK);
    cr_assert_eq(map.bytes, BYTES);
    cr_assert_eq(memcmp(map.data, wanted, BYTES), 0);
    file_map_close(&map);
    file_map_close(&map);
    cr_assert_eq(file_map_open(&map, path, 10), STATUS_TOO_LARGE);
    cr_assert_eq(truncate(path, 0), 0);
    cr_assert_eq(file_map_open(&map, path, 10), STATUS_OK);
    cr_assert_null(map.data);
    cr_assert_eq(file_map_open(&map, "/nowhere", 10), STATUS_NOT_FOUND);
}
