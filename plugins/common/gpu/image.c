/* The calls of image.h. Sources: the ELF specification for cubins and code objects; the header of fatbins as NVIDIA's
 * toolkit has it in fatbinary_section.h; the clang offload bundler's documentation for bundles of code objects. */
#include "image.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

bool gpu_image_has_format(const char *list, const char *format) {
  const size_t length = strlen(format);
  for (const char *at = list; length > 0 && *at != '\0';) {
    const size_t word = strcspn(at, ",");
    if (word == length && strncmp(at, format, length) == 0) return true;
    at += word + (at[word] == ',');
  }
  return false;
}

bool gpu_image_is_source(const char *format) {
  return strcmp(format, "cuda") == 0 || strcmp(format, "hip") == 0;
}

static bool is_text(const void *data, uint64_t bytes, char *why, size_t why_bytes) {
  const char *zero = memchr(data, '\0', (size_t)bytes);
  if (zero == NULL) return true;
  /* Some write the zero that ends it, and fill up. */
  for (uint64_t i = (uint64_t)(zero - (const char *)data); i < bytes; i++) {
    if (((const char *)data)[i] == '\0') continue;
    snprintf(why, why_bytes, "it is a text, and has a zero inside");
    return false;
  }
  return true;
}

/* first + count * each within bytes */
static bool fits(uint64_t first, uint64_t count, uint64_t each, uint64_t bytes) {
  return first <= bytes && (count == 0 || each <= (bytes - first) / count);
}

/* What has a size and no bytes in the file: in objects of NVIDIA's that are yet to be linked also memory of these types
 * (.nv.global, .nv.local, .nv.shared). */
static bool is_empty(const Elf64_Ehdr *h, uint32_t type) {
  enum { MACHINE_CUDA = 190, CUDA_GLOBAL = 0x70000007, CUDA_LOCAL = 0x70000009, CUDA_SHARED = 0x7000000a };
  if (type == SHT_NOBITS || type == SHT_NULL) return true;
  return h->e_machine == MACHINE_CUDA && (type == CUDA_GLOBAL || type == CUDA_LOCAL || type == CUDA_SHARED);
}

static bool is_elf(const void *data, uint64_t bytes, char *why, size_t why_bytes) {
  Elf64_Ehdr h;
  if (bytes < sizeof h || memcmp(data, ELFMAG, SELFMAG) != 0) {
    snprintf(why, why_bytes, "it does not begin as an ELF file");
    return false;
  }
  memcpy(&h, data, sizeof h);
  bool good = h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_ident[EI_DATA] == ELFDATA2LSB &&
              fits(h.e_shoff, h.e_shnum, h.e_shentsize, bytes) && fits(h.e_phoff, h.e_phnum, h.e_phentsize, bytes) &&
              (h.e_shnum == 0 || h.e_shentsize >= sizeof(Elf64_Shdr));
  for (uint32_t i = 0; good && i < h.e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, (const char *)data + h.e_shoff + (uint64_t)i * h.e_shentsize, sizeof section);
    if (!is_empty(&h, section.sh_type)) good = fits(section.sh_offset, 1, section.sh_size, bytes);
  }
  if (!good) snprintf(why, why_bytes, "it is an ELF file that is cut off or damaged");
  return good;
}

/* Magic number, version, bytes of the header, bytes behind it. */
static bool is_fatbin(const void *data, uint64_t bytes, char *why, size_t why_bytes) {
  static const unsigned char magic[4] = {0x50, 0xed, 0x55, 0xba};
  uint16_t header = 0;
  uint64_t more = 0;
  if (bytes < 16 || memcmp(data, magic, sizeof magic) != 0) {
    snprintf(why, why_bytes, "it does not begin as a fatbin");
    return false;
  }
  memcpy(&header, (const char *)data + 6, sizeof header);
  memcpy(&more, (const char *)data + 8, sizeof more);
  if (header >= 16 && fits(header, 1, more, bytes)) return true;
  snprintf(why, why_bytes, "it says that it has %llu bytes", (unsigned long long)header + more);
  return false;
}

/* Magic words, a count, and for each part its place, size and target. */
static bool is_bundle(const unsigned char *data, uint64_t bytes, char *why, size_t why_bytes) {
  uint64_t at = 24, count = 0;
  if (bytes >= 32) memcpy(&count, data + at, sizeof count);
  at += 8;
  bool good = bytes >= 32;
  for (uint64_t i = 0; good && i < count; i++) {
    uint64_t part[3];
    good = fits(at, 1, sizeof part, bytes);
    if (good) memcpy(part, data + at, sizeof part);
    good = good && fits(part[0], 1, part[1], bytes) && fits(at + sizeof part, 1, part[2], bytes);
    if (good) at += sizeof part + part[2];
  }
  if (!good) snprintf(why, why_bytes, "it is a bundle that is cut off or damaged");
  return good;
}

/* A bundle that is compressed: magic word, version, method, and from version 2 on the size of it all. */
static bool is_packed(const unsigned char *data, uint64_t bytes, char *why, size_t why_bytes) {
  uint16_t version = 0;
  uint32_t narrow = 0;
  uint64_t size = UINT64_MAX;
  if (bytes >= 16) memcpy(&version, data + 4, sizeof version);
  if (version == 2) {
    memcpy(&narrow, data + 8, sizeof narrow);
    size = narrow;
  } else if (version > 2) {
    memcpy(&size, data + 8, sizeof size);
  }
  if (version == 1) snprintf(why, why_bytes, "it is a compressed bundle that does not say how long it is");
  else if (size < 16 || size > bytes) snprintf(why, why_bytes, "it is a compressed bundle that is cut off or damaged");
  else return true;
  return false;
}

bool gpu_image_is_whole(const char *format, const void *data, uint64_t bytes, char *why, size_t why_bytes) {
  static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
  if (strcmp(format, "ptx") == 0 || gpu_image_is_source(format)) return is_text(data, bytes, why, why_bytes);
  if (strcmp(format, "fatbin") == 0) return is_fatbin(data, bytes, why, why_bytes);
  if (strcmp(format, "hsaco") == 0 && bytes >= sizeof bundle - 1 && memcmp(data, bundle, sizeof bundle - 1) == 0)
    return is_bundle(data, bytes, why, why_bytes);
  if (strcmp(format, "hsaco") == 0 && bytes >= 4 && memcmp(data, "CCOB", 4) == 0)
    return is_packed(data, bytes, why, why_bytes);
  return is_elf(data, bytes, why, why_bytes);
}
