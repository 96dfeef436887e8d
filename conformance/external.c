/* The group "external": memory that goes to another API by a handle of the operating system, here to the same device
 * again. */
#include "conformance/tables.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { BYTES = 65536 };

/* Exports in the first kind that the device takes; skips where it takes none. */
static int64_t export_any(kit *k, heddle_pbuffer *buffer, uint32_t *kind) {
  if (!k->t.has_external) kit_skip(k, "the plugin shares no memory by handles");
  for (*kind = HEDDLE_EXTERNAL_OPAQUE_FD; *kind <= HEDDLE_EXTERNAL_DMA_BUF; (*kind)++) {
    int64_t handle = -1;
    heddle_status status = k->t.external.export_memory(k->dev, buffer, *kind, &handle, &k->err);
    if (status == HEDDLE_OK) {
      if (handle < 0 || handle > INT32_MAX || fcntl((int)handle, F_GETFD) < 0)
        kit_fail(k, "external.export_memory gave %" PRId64 ", which is no open file descriptor", handle);
      return handle;
    }
    kit_fails(k, status, HEDDLE_EUNSUPPORTED, HEDDLE_EUNSUPPORTED, "external.export_memory of 64 KiB of DEVICE memory");
  }
  kit_skip(k, "the device exports no DEVICE memory: %s", k->err.text);
}

/* Takes the handle over, or fails the case. */
static heddle_pbuffer *import(kit *k, uint32_t kind, int64_t handle) {
  heddle_pbuffer *buffer = NULL;
  kit_ok(k, k->t.external.import_memory(k->dev, kind, handle, BYTES, &buffer, &k->err), "external.import_memory");
  if (buffer == NULL) kit_fail(k, "external.import_memory answered HEDDLE_OK and gave no buffer");
  return buffer;
}

static void shared(kit *k) {
  uint32_t kind;
  heddle_pstream *s = kit_stream(k, k->dev);
  heddle_pbuffer *first = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  int64_t handle = export_any(k, first, &kind);
  heddle_pbuffer *second = import(k, kind, handle);
  kit_put_pattern(k, s, first, 0, BYTES, 1);
  kit_holds(k, s, second, 0, BYTES, 1, "an imported buffer after a write to the exported one");
  kit_put_pattern(k, s, second, 0, BYTES, 2);
  kit_holds(k, s, first, 0, BYTES, 2, "an exported buffer after a write to the imported one");
  kit_free(k, k->dev, second);
  kit_holds(k, s, first, 0, BYTES, 2, "an exported buffer after the imported one was freed");
  kit_free(k, k->dev, first);
  k->t.stream.close(s);
}

static int open_files(void) {
  int n = 0;
  for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

/* Descriptors belong to who was said to own them: the host after an export, the plugin after an import. */
static void owned(kit *k) {
  uint32_t kind;
  heddle_pbuffer *first = kit_buffer(k, k->dev, HEDDLE_MEMORY_DEVICE, BYTES);
  close((int)export_any(k, first, &kind));
  int64_t handle = export_any(k, first, &kind);
  kit_free(k, k->dev, import(k, kind, handle));
  int before = open_files();
  for (uint32_t i = 0; i < 16; i++) {
    close((int)export_any(k, first, &kind));
    handle = export_any(k, first, &kind);
    kit_free(k, k->dev, import(k, kind, handle));
  }
  int more = open_files() - before;
  if (more != 0) kit_fail(k, "%d more file descriptors are open after 32 exports and 16 imports", more);
  kit_free(k, k->dev, first);
}

static void refused(kit *k) {
  heddle_pbuffer *buffer = NULL;
  if (!k->t.has_external) kit_skip(k, "the plugin shares no memory by handles");
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) kit_skip(k, "there is no /dev/null");
  heddle_status status = k->t.external.import_memory(k->dev, HEDDLE_EXTERNAL_OPAQUE_FD, fd, BYTES, &buffer, &k->err);
  if (status == HEDDLE_OK) kit_fail(k, "external.import_memory took /dev/null for 64 KiB of memory");
  kit_fails(k, status, status, status, "external.import_memory of what is no memory");
  if (buffer != NULL) kit_fail(k, "external.import_memory failed and wrote its out-argument");
  if (fcntl(fd, F_GETFD) < 0)
    kit_fail(k, "external.import_memory failed and closed the handle, which stays the host's");
  close(fd);
}

static void required(kit *k) {
  if (!k->t.has_external) kit_skip(k, "the plugin shares no memory by handles");
  if (k->t.external.export_memory == NULL || k->t.external.import_memory == NULL)
    kit_fail(k, "the plugin shares memory by handles, and external.export_memory or import_memory is NULL");
}

#define ON_DEVICE(name, promise, run) \
  { "external/" name, promise, KIT_STAGE_DEVICE, 0, 0, run, NULL }

KIT_GROUP(kit_external, "external",
          {"external/required", "a plugin that shares memory by handles has the whole table", KIT_STAGE_ENTRY, 0, 0,
           required, NULL},
          ON_DEVICE("shared", "an imported buffer has the exported one's bytes", shared),
          ON_DEVICE("owned", "a handle belongs to the host after export, to the plugin after import", owned),
          ON_DEVICE("refused", "what is no memory is refused, and its handle stays the host's", refused));
