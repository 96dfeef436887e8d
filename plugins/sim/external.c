/* Memory that a file descriptor can name, for the setting external: device buffers above a page lie in anonymous files
 * of Linux, which are sealed so that they cannot be cut under a device that has them mapped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create and seals, which POSIX lacks */
#endif

#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t whole_pages(uint64_t bytes) {
  return (bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}

/* Maps fd into block; fd stays the caller's where it fails. */
static heddle_status map_fd(int fd, uint64_t bytes, sim_block *block, heddle_error *err) {
  uint64_t mapped = whole_pages(bytes);
  void *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED)
    return p_fail(err, HEDDLE_ENOMEM, errno, "%llu bytes of a shared file could not be mapped: %s",
                  (unsigned long long)mapped, strerror(errno));
  block->bytes = p;
  block->mapped = mapped;
  block->fd = fd;
  return HEDDLE_OK;
}

heddle_status sim_external_map(uint64_t bytes, sim_block *block, heddle_error *err) {
  int fd = memfd_create("heddle-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  heddle_status status = HEDDLE_OK;
  if (fd < 0 || ftruncate(fd, (off_t)whole_pages(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    status = p_fail(err, HEDDLE_ENOMEM, errno, "no shared file of %llu bytes: %s", (unsigned long long)bytes,
                    strerror(errno));
  if (status == HEDDLE_OK) status = map_fd(fd, bytes, block, err);
  if (status != HEDDLE_OK && fd >= 0) close(fd);
  return status;
}

void sim_external_unmap(sim_block *block) {
  munmap(block->bytes, block->mapped);
  close(block->fd);
}

static heddle_status check_kind(heddle_pdevice *dev, uint32_t kind, heddle_error *err) {
  heddle_status status = sim_enter(dev, SIM_CALL_EXTERNAL, err);
  if (status != HEDDLE_OK) return status;
  if (!dev->settings.external)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u shares no memory by handle unless its setting external is 1",
                  dev->index);
  if (kind == HEDDLE_EXTERNAL_OPAQUE_FD) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u: no external handles of kind %u, only opaque file descriptors",
                dev->index, kind);
}

static heddle_status export_memory(heddle_pdevice *dev, heddle_pbuffer *buffer, uint32_t kind, int64_t *out,
                                   heddle_error *err) {
  uint8_t *unused;
  heddle_status status = check_kind(dev, kind, err);
  if (status == HEDDLE_OK) status = sim_bytes(dev, buffer, 0, 0, SIM_OPERAND, "export", &unused, err);
  if (status != HEDDLE_OK) return status;
  sim_buffer *b = sim_table_get(dev->self, buffer);
  if (b->block == NULL || b->block->fd < 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u: a view, or a buffer of at most %d bytes, cannot be exported",
                  dev->index, SIM_PAGE);
  int fd = fcntl(b->block->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return p_fail(err, HEDDLE_EFAILED, errno, "sim:%u: no file descriptor: %s", dev->index, strerror(errno));
  *out = fd;
  return HEDDLE_OK;
}

static heddle_status import_memory(heddle_pdevice *dev, uint32_t kind, int64_t handle, uint64_t bytes,
                                   heddle_pbuffer **out, heddle_error *err) {
  struct stat file;
  heddle_status status = check_kind(dev, kind, err);
  if (status != HEDDLE_OK) return status;
  if (handle < 0 || handle > INT32_MAX || bytes == 0 || fstat((int)handle, &file) != 0)
    return p_fail(err, HEDDLE_EINVAL, errno, "sim:%u: import of handle %lld: no open file, or no bytes asked",
                  dev->index, (long long)handle);
  if (file.st_size < 0 || (uint64_t)file.st_size < bytes)
    return p_fail(err, HEDDLE_EINVAL, 0, "sim:%u: import of %llu bytes from a file of %lld", dev->index,
                  (unsigned long long)bytes, (long long)file.st_size);
  int seals = fcntl((int)handle, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "sim:%u: import: the file is not sealed against shrinking", dev->index);
  sim_block *block = sim_alloc(dev->host, sizeof *block);
  if (block == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "sim:%u: no memory for an import", dev->index);
  block->retired.destroy = sim_block_destroy;
  block->size = bytes;
  status = sim_memory_reserve(dev, bytes, err);
  if (status != HEDDLE_OK) {
    dev->host->free(dev->host->ctx, block);
    return status;
  }
  status = map_fd((int)handle, bytes, block, err);
  if (status == HEDDLE_OK) {
    status = sim_memory_enter(dev, HEDDLE_MEMORY_DEVICE, block->bytes, NULL, bytes, block, NULL, out, err);
    if (status == HEDDLE_OK) return HEDDLE_OK;
    munmap(block->bytes, block->mapped); /* the handle stays the caller's */
  }
  atomic_fetch_sub(&dev->live_bytes, bytes);
  dev->host->free(dev->host->ctx, block);
  return status;
}

const heddle_external_table sim_external_table = {
    .struct_size = sizeof(heddle_external_table),
    .export_memory = export_memory,
    .import_memory = import_memory,
};
