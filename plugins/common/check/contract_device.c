/* Descriptions of devices, and texts: see contract.h. */
#include "contract.h"

#include "../utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ALIGNMENT = 65536 };

static bool broken(char *why, uint32_t index, const char *format, ...) {
  va_list args;
  const int n = snprintf(why, CONTRACT_TEXT, "device %u: ", (unsigned)index);
  va_start(args, format);
  if (n > 0 && vsnprintf(why + n, CONTRACT_TEXT - (size_t)n, format, args) < 0) why[0] = '\0';
  va_end(args);
  return false;
}

/* ---------------------------------------------------------------- texts */

const char *contract_text_fault(const char *text, uint64_t bytes) {
  if (text == NULL) return "is NULL";
  const char *end = memchr(text, '\0', bytes);
  if (end == NULL) return "is not terminated";
  while (text < end) {
    const unsigned char c = (unsigned char)*text;
    if (c == '\n' || c == '\r') return "has several lines";
    if (c < 0x20 || c == 0x7f) return "has control characters";
    const uint64_t length = utf8_character(text, (uint64_t)(end - text));
    if (length == 0) return "is not UTF-8";
    text += length;
  }
  return NULL;
}

static bool text_holds(uint32_t index, const char *what, const char *text, uint64_t bytes, char *why) {
  const char *fault = contract_text_fault(text, bytes);
  if (fault == NULL && text[0] == '\0') fault = "is empty";
  return fault == NULL || broken(why, index, "its %s %s; texts are one line of UTF-8 with a terminator", what, fault);
}

bool contract_device_texts(uint32_t index, const heddle_pdevice_desc *d, char *why) {
  return text_holds(index, "name", d->name, sizeof d->name, why) &&
         text_holds(index, "driver", d->driver, sizeof d->driver, why);
}

/* ---------------------------------------------------------------- numbers */

static bool power_of_two(uint64_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

bool contract_device_numbers(uint32_t index, const heddle_pdevice_desc *d, char *why) {
  const int absent = (d->pci_domain == UINT32_MAX) + (d->pci_bus == UINT32_MAX) + (d->pci_device == UINT32_MAX) +
                     (d->pci_function == UINT32_MAX);
  if (!power_of_two(d->alignment) || d->alignment > MOST_ALIGNMENT)
    return broken(why, index, "alignment is %llu, which is no power of two up to %d", (unsigned long long)d->alignment,
                  (int)MOST_ALIGNMENT);
  if (d->import_alignment != 0 && !power_of_two(d->import_alignment))
    return broken(why, index, "import_alignment is %llu, which is no power of two",
                  (unsigned long long)d->import_alignment);
  if (d->max_streams == 0) return broken(why, index, "max_streams is 0; it is at least 1");
  return absent == 0 || absent == 4 ||
         broken(why, index, "some of the four PCI numbers are 0xffffffff: all are, or none");
}

/* A type of DLPack's tells whose handles a tensor has, so it belongs to the plugin of that name. */
bool contract_device_type(uint32_t index, const heddle_pdevice_desc *d, const char *plugin, char *why) {
  static const struct {
    int32_t type;
    char plugin[8];
  } theirs[] = {{HEDDLE_DEVICE_CUDA, "cuda"},
                {HEDDLE_DEVICE_OPENCL, "opencl"},
                {HEDDLE_DEVICE_VULKAN, "vulkan"},
                {HEDDLE_DEVICE_ROCM, "rocm"}};
  if (d->type < 1) return broken(why, index, "type %d is no type of DLPack's", (int)d->type);
  for (size_t n = 0; n < sizeof theirs / sizeof theirs[0]; n++)
    if (d->type == theirs[n].type && strcmp(plugin, theirs[n].plugin) != 0)
      return broken(why, index, "type %d is that of the plugin '%s'; others use HEDDLE_DEVICE_EXT (%d)", (int)d->type,
                    theirs[n].plugin, (int)HEDDLE_DEVICE_EXT);
  if (d->type == HEDDLE_DEVICE_CPU && (d->caps & (HEDDLE_CAP_INLINE | HEDDLE_CAP_HOST_CORES)) == 0)
    return broken(why, index, "type 1 is the host's, and the device is neither inline nor on the host's cores");
  return true;
}

bool contract_device_caps(uint32_t index, const heddle_pdevice_desc *d, const contract_tables *t, char *why) {
  const bool is_inline = (d->caps & HEDDLE_CAP_INLINE) != 0;
  if ((d->caps & HEDDLE_CAP_VIEWS) != 0 && t->memory.view == NULL)
    return broken(why, index, "HEDDLE_CAP_VIEWS is set, and memory.view is missing");
  if ((d->caps & HEDDLE_CAP_NONCOHERENT) != 0 && (t->memory.flush == NULL || t->memory.invalidate == NULL))
    return broken(why, index, "HEDDLE_CAP_NONCOHERENT is set, and memory.flush or memory.invalidate is missing");
  if ((!is_inline || (d->caps & HEDDLE_CAP_UNIFIED) != 0) && (t->memory.map == NULL || t->memory.unmap == NULL))
    return broken(why, index, "the device has memory to map, and memory.map or memory.unmap is missing");
  if (d->import_alignment != 0 && t->memory.import_host == NULL)
    return broken(why, index, "import_alignment is %llu, and memory.import_host is missing",
                  (unsigned long long)d->import_alignment);
#ifdef HEDDLE_CAP_IMPORT_UNIFIED /* tests/abi builds this with the header of 1.0 too */
  if ((d->caps & HEDDLE_CAP_IMPORT_UNIFIED) != 0 && d->import_alignment == 0)
    return broken(why, index, "HEDDLE_CAP_IMPORT_UNIFIED is set, and import_alignment is 0: there are no imports");
#endif
  if (!is_inline && !t->has_event)
    return broken(why, index, "the device is not inline, and the table event is missing");
  if (!is_inline && t->fence.signal == NULL)
    return broken(why, index, "the device is not inline, and fence.signal is missing");
  if ((d->caps & HEDDLE_CAP_WAIT_BEFORE_SIGNAL) != 0 && t->fence.wait == NULL)
    return broken(why, index, "HEDDLE_CAP_WAIT_BEFORE_SIGNAL is set, and fence.wait is missing");
  return true;
}

bool contract_device_pair(uint32_t i, const heddle_pdevice_desc *a, uint32_t j, const heddle_pdevice_desc *b,
                          char *why) {
  static const uint8_t none[16];
  if (memcmp(a->uuid, b->uuid, sizeof a->uuid) != 0 || memcmp(a->uuid, none, sizeof none) == 0 ||
      strncmp(a->driver, b->driver, sizeof a->driver) != 0)
    return true;
  return broken(why, j, "it and device %u of the same driver have the same uuid, which names one physical device",
                (unsigned)i);
}
