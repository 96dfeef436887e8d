/* Copies: memcpy between ranges that have been checked, complete on return. All kinds of buffer are host memory, so
 * the three copies between buffers are one. */
#include "cpu.h"

static void move(char *dst, const char *src, uint64_t bytes) {
  if (bytes > 0 && dst != src) memcpy(dst, src, bytes);
}

static heddle_status copy_buffers(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, heddle_pbuffer *src,
                                  uint64_t src_offset, uint64_t bytes, heddle_error *err) {
  char *to = NULL, *from = NULL;
  (void)stream;
  heddle_status s = cpu_range(dst, dst_offset, bytes, "copy to", &to, err);
  if (s == HEDDLE_OK) s = cpu_range(src, src_offset, bytes, "copy from", &from, err);
  if (s == HEDDLE_OK) move(to, from, bytes);
  return s;
}

static heddle_status copy_write(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, const void *src,
                                uint64_t bytes, heddle_error *err) {
  char *to = NULL;
  (void)stream;
  heddle_status s = cpu_range(dst, dst_offset, bytes, "write", &to, err);
  if (s == HEDDLE_OK) move(to, src, bytes);
  return s;
}

static heddle_status copy_read(heddle_pstream *stream, void *dst, heddle_pbuffer *src, uint64_t src_offset,
                               uint64_t bytes, heddle_error *err) {
  char *from = NULL;
  (void)stream;
  heddle_status s = cpu_range(src, src_offset, bytes, "read", &from, err);
  if (s == HEDDLE_OK) move(dst, from, bytes);
  return s;
}

/* Imported memory may lie at any address, so words are not stored as words. */
static heddle_status copy_fill(heddle_pstream *stream, heddle_pbuffer *dst, uint64_t dst_offset, uint64_t bytes,
                               uint32_t pattern, heddle_error *err) {
  char *to = NULL;
  (void)stream;
  heddle_status s = cpu_range(dst, dst_offset, bytes, "fill", &to, err);
  if (s != HEDDLE_OK) return s;
  if (dst_offset % sizeof pattern != 0 || bytes % sizeof pattern != 0) {
    return p_fail(err, HEDDLE_EINVAL, 0, "cpu:0: fill of %llu bytes at %llu: both must be multiples of 4",
                  (unsigned long long)bytes, (unsigned long long)dst_offset);
  }
  for (uint64_t i = 0; i < bytes; i += sizeof pattern) memcpy(to + i, &pattern, sizeof pattern);
  return HEDDLE_OK;
}

const heddle_copy_table cpu_copy_table = {
    .struct_size = sizeof cpu_copy_table,
    .h2d = copy_buffers,
    .d2h = copy_buffers,
    .write = copy_write,
    .read = copy_read,
    .d2d = copy_buffers,
    .fill = copy_fill,
};
