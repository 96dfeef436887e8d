/* Copies and fills, checked when they are asked for and when their turn comes. */
#include "engine_inside.h"

static bool is_pinned(const void *p, size_t bytes) {
  const eng_allocation *a = eng_allocation_at((uint64_t)(uintptr_t)p);
  return a != NULL && (uint64_t)(uintptr_t)p - a->base + bytes <= a->bytes;
}

static bool is_device(const void *p) {
  const eng_allocation *a = eng_allocation_at((uint64_t)(uintptr_t)p);
  return a != NULL && a->area == ENG_AREA_DEVICE;
}

/* One side of a copy. A host's side is checked as far as the driver knows it. */
static int side_check(const eng_context *ctx, const void *p, size_t bytes, bool device, const char *what) {
  const eng_allocation *a = eng_allocation_at((uint64_t)(uintptr_t)p);
  const char *wrong = NULL;
  if (device) wrong = eng_memory_wrong(ctx, (uint64_t)(uintptr_t)p, bytes, false);
  else if (a != NULL && a->area == ENG_AREA_DEVICE) wrong = "is a device's memory, and the host's is asked for";
  else if (a != NULL && a->area == ENG_AREA_HOST) wrong = eng_memory_wrong(ctx, (uint64_t)(uintptr_t)p, bytes, false);
  else if (bytes > 0 && eng_allocation_at((uint64_t)(uintptr_t)p + bytes - 1) != a) wrong = "is registered in part";
  if (wrong == NULL) return ENG_OK;
  eng_misuse("a copy's %s, %zu bytes at %p: it %s", what, bytes, p, wrong);
  return ENG_INVALID_VALUE;
}

static int check(const eng_context *ctx, eng_copy_kind kind, const void *dst, const void *src, size_t bytes) {
  int code = side_check(ctx, dst, bytes, kind == ENG_H2D || kind == ENG_D2D, "destination");
  if (code == ENG_OK) code = side_check(ctx, src, bytes, kind == ENG_D2H || kind == ENG_D2D, "source");
  return code;
}

/* What from pageable memory goes to a device is read before the call returns. */
static int stage(eng_work *work) {
  work->copy.staged = malloc(work->copy.bytes);
  if (work->copy.staged == NULL) return ENG_OUT_OF_MEMORY;
  memcpy(work->copy.staged, work->copy.src, work->copy.bytes);
  work->copy.src = work->copy.staged;
  return ENG_OK;
}

static int copy(eng_copy_kind kind, void *dst, const void *src, size_t bytes, eng_stream_handle handle, bool wait) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && kind == ENG_COPY_ANY)
    kind = is_device(src) ? is_device(dst) ? ENG_D2D : ENG_D2H : is_device(dst) ? ENG_H2D : ENG_H2H;
  if (code == ENG_OK && bytes > 0) code = check(stream->o.ctx, kind, dst, src, bytes);
  const bool captured = code == ENG_OK && stream->capture != NULL;
  if (code == ENG_OK && wait) code = eng_capture_unsafe("a copy that waits");
  const bool pageable = kind == ENG_H2D ? !is_pinned(src, bytes) : kind == ENG_D2H ? !is_pinned(dst, bytes) : false;
  eng_leave();
  if (code != ENG_OK || bytes == 0) return code;
  eng_work *work = eng_work_new(ENG_WORK_COPY);
  work->copy.dst = dst;
  work->copy.src = src;
  work->copy.bytes = bytes;
  work->copy.kind = kind;
  if (pageable && !captured && !wait) {
    if (kind == ENG_H2D) code = stage(work);
    else wait = true;
  }
  if (code == ENG_OK) return eng_put(handle, work, wait);
  eng_work_drop(work);
  return code;
}

int eng_copy(eng_copy_kind kind, void *dst, const void *src, size_t bytes, eng_stream_handle stream, bool wait) {
  return copy(kind, dst, src, bytes, stream, wait);
}

int eng_copy_peer(eng_context *dst_ctx, void *dst, eng_context *src_ctx, const void *src, size_t bytes,
                  eng_stream_handle stream, bool wait) {
  eng_enter();
  int code = eng_object_is(dst_ctx, ENG_CONTEXT) && eng_object_is(src_ctx, ENG_CONTEXT) ? ENG_OK : ENG_INVALID_CONTEXT;
  const eng_allocation *to = eng_allocation_at((uint64_t)(uintptr_t)dst),
                       *from = eng_allocation_at((uint64_t)(uintptr_t)src);
  if (code == ENG_OK && bytes > 0 &&
      (to == NULL || from == NULL || to->device != dst_ctx->device || from->device != src_ctx->device)) {
    eng_misuse("a copy between contexts is given memory of another one");
    code = ENG_INVALID_VALUE;
  }
  eng_leave();
  return code == ENG_OK ? copy(ENG_D2D, dst, src, bytes, stream, wait) : code;
}

int eng_fill(uint64_t dst, uint32_t word, unsigned width, size_t count, eng_stream_handle handle, bool wait) {
  eng_stream *stream = NULL;
  eng_enter();
  int code = eng_stream_find(handle, &stream);
  if (code == ENG_OK && wait) code = eng_capture_unsafe("a fill that waits");
  if (code == ENG_OK && (dst % width != 0 || count > SIZE_MAX / width)) code = ENG_INVALID_VALUE;
  const char *wrong = code == ENG_OK && count > 0 ? eng_memory_wrong(stream->o.ctx, dst, count * width, false) : NULL;
  if (wrong != NULL) {
    eng_misuse("a fill of %zu bytes at %#llx: it %s", count * width, (unsigned long long)dst, wrong);
    code = ENG_INVALID_VALUE;
  }
  eng_leave();
  if (code != ENG_OK || count == 0) return code;
  eng_work *work = eng_work_new(ENG_WORK_FILL);
  work->fill.dst = (char *)(uintptr_t)dst;
  work->fill.word = word;
  work->fill.width = width;
  work->fill.count = count;
  return eng_put(handle, work, wait);
}
