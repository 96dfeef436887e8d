/* conformance/root.c: the group "root": instances, how many devices there are, and what is said of them. */
#include <string.h>

#include "conformance/kit_side.h"

static void open_once(kit *k) {
  const char *missing = kit_missing(k);
  if (missing != NULL) kit_skip(k, "%s is missing (load/functions)", missing);
  if (kit_stage_instance(k)) return;
  if (k->instance == NULL && k->err.status == HEDDLE_ENODEV) kit_skip(k, "%s", k->err.text);
  if (k->instance != NULL && k->n_devices == 0) kit_skip(k, "%s", k->err.text);
  kit_fail(k, "%s", k->err.text);
}

static heddle_pinstance *open_another(kit *k) {
  heddle_pinstance *instance = NULL;
  kit_ok(k, k->root.open_instance(&k->host, &instance, &k->err), "open_instance");
  if (instance == NULL) kit_fail(k, "open_instance said yes and gave nothing");
  return instance;
}

static uint32_t count(kit *k, heddle_pinstance *instance) {
  uint32_t n = UINT32_MAX;
  kit_ok(k, k->root.device_count(instance, &n, &k->err), "device_count");
  return n;
}

static void describe(kit *k, heddle_pinstance *instance, uint32_t index, heddle_pdevice_desc *desc) {
  *desc = (heddle_pdevice_desc){.struct_size = sizeof *desc};
  kit_ok(k, k->root.device_describe(instance, index, desc, &k->err), "device_describe");
}

static void reopen(kit *k) {
  for (int i = 0; i < 8; i++) {
    heddle_pinstance *instance = open_another(k);
    uint32_t n = count(k, instance);
    if (n != k->n_devices)
      kit_fail(k, "an instance that was opened later has %u devices, the first %u", (unsigned)n,
               (unsigned)k->n_devices);
    k->root.close_instance(instance);
  }
}

static void two_at_once(kit *k) {
  heddle_pinstance *other = open_another(k);
  if (other == k->instance) kit_fail(k, "two instances are the same pointer: each opening is an instance of its own");
  kit_close(k, kit_open(k, k->index));
  k->root.close_instance(other);
  kit_close(k, kit_open(k, k->index)); /* the first one does not notice */
}

static void counts(kit *k) {
  if (k->n_devices > 1024) kit_fail(k, "device_count gave %u devices; a host takes 1024", (unsigned)k->n_devices);
  for (int i = 0; i < 3; i++)
    if (count(k, k->instance) != k->n_devices)
      kit_fail(k, "device_count gave %u and then %u: it is fixed for the instance", (unsigned)k->n_devices,
               (unsigned)count(k, k->instance));
}

static void describe_size(kit *k) {
  struct {
    heddle_pdevice_desc desc;
    unsigned char behind[256];
  } room;
  for (uint32_t i = 0; i < k->n_devices; i++)
    for (uint32_t newer = 0; newer <= sizeof room.behind / 2; newer += sizeof room.behind / 2) {
      memset(&room, 0x6b, sizeof room);
      memset(&room.desc, 0, sizeof room.desc);
      memset(room.behind, 0, newer);
      room.desc.struct_size = (uint32_t)(sizeof room.desc + newer);
      kit_ok(k, k->root.device_describe(k->instance, i, &room.desc, &k->err), "device_describe");
      for (uint32_t j = 0; j < sizeof room.behind; j++)
        if (room.behind[j] != (j < newer ? 0 : 0x6b))
          kit_fail(k, "device_describe wrote %zu bytes behind the members of ABI 1.0 (struct_size was %u)",
                   (size_t)j + 1, (unsigned)(sizeof room.desc + newer));
      if (room.desc.struct_size != sizeof room.desc + newer)
        kit_fail(k, "device_describe changed the host's struct_size to %u", (unsigned)room.desc.struct_size);
    }
}

static void stable(kit *k) {
  heddle_pdevice_desc again;
  describe(k, k->instance, k->index, &again);
  again.name[sizeof again.name - 1] = '\0';
  again.driver[sizeof again.driver - 1] = '\0';
  if (strcmp(again.name, k->desc.name) != 0 || strcmp(again.driver, k->desc.driver) != 0 ||
      again.type != k->desc.type || again.caps != k->desc.caps || again.alignment != k->desc.alignment ||
      again.event_domain != k->desc.event_domain || memcmp(again.uuid, k->desc.uuid, sizeof again.uuid) != 0)
    kit_fail(k, "device_describe gave two answers for one device");
}

static bool power_of_two(uint64_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

static void numbers(kit *k) {
  const heddle_pdevice_desc *d = &k->desc;
  if (!power_of_two(d->alignment))
    kit_fail(k, "alignment is %llu, which is no power of two", (unsigned long long)d->alignment);
  if (d->alignment > 65536)
    kit_fail(k, "alignment is %llu; a host lays tensors at most 65536 apart", (unsigned long long)d->alignment);
  if (d->import_alignment != 0 && !power_of_two(d->import_alignment))
    kit_fail(k, "import_alignment is %llu, which is no power of two", (unsigned long long)d->import_alignment);
  if (d->max_streams == 0) kit_fail(k, "max_streams is 0; it is at least 1");
  uint32_t none = (d->pci_domain == UINT32_MAX) + (d->pci_bus == UINT32_MAX) + (d->pci_device == UINT32_MAX) +
                  (d->pci_function == UINT32_MAX);
  if (none != 0 && none != 4) kit_fail(k, "some of the four PCI numbers are 0xffffffff: all are, or none");
}

static void texts(kit *k) {
  for (uint32_t i = 0; i < k->n_devices; i++) {
    heddle_pdevice_desc d;
    describe(k, k->instance, i, &d);
    kit_text(k, d.name, sizeof d.name, "a device's name");
    kit_text(k, d.driver, sizeof d.driver, "a device's driver");
    if (d.name[0] == '\0') kit_fail(k, "device %u has an empty name", (unsigned)i);
    if (d.driver[0] == '\0') kit_fail(k, "device %u has an empty driver: caches are kept by it", (unsigned)i);
  }
}

static void uuids(kit *k) {
  static const uint8_t zero[16];
  for (uint32_t i = 1; i < k->n_devices; i++)
    for (uint32_t j = 0; j < i; j++) {
      heddle_pdevice_desc a, b;
      describe(k, k->instance, j, &a);
      describe(k, k->instance, i, &b);
      if (memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0 && memcmp(a.uuid, zero, sizeof zero) != 0 &&
          strncmp(a.driver, b.driver, sizeof a.driver) == 0)
        kit_fail(k, "devices %u and %u of one driver have the same uuid: it names one physical device", (unsigned)j,
                 (unsigned)i);
    }
}

/* A type of DLPack's says whose handles a tensor has, so it belongs to the plugin of that name. */
static void type(kit *k) {
  static const struct {
    int32_t type;
    const char *plugin;
  } theirs[] = {{HEDDLE_DEVICE_CUDA, "cuda"},
                {HEDDLE_DEVICE_OPENCL, "opencl"},
                {HEDDLE_DEVICE_VULKAN, "vulkan"},
                {HEDDLE_DEVICE_ROCM, "rocm"}};
  for (uint32_t i = 0; i < k->n_devices; i++) {
    heddle_pdevice_desc d;
    describe(k, k->instance, i, &d);
    if (d.type < 1) kit_fail(k, "device %u has type %d, which is none of DLPack's", (unsigned)i, (int)d.type);
    for (size_t n = 0; n < sizeof theirs / sizeof theirs[0]; n++)
      if (d.type == theirs[n].type && strcmp(k->root.name, theirs[n].plugin) != 0)
        kit_fail(k, "device %u has DLPack's type %d, that of the plugin '%s'; others use HEDDLE_DEVICE_EXT (%d)",
                 (unsigned)i, (int)d.type, theirs[n].plugin, HEDDLE_DEVICE_EXT);
    if (d.type == HEDDLE_DEVICE_CPU && (d.caps & (HEDDLE_CAP_INLINE | HEDDLE_CAP_HOST_CORES)) == 0)
      kit_fail(k, "device %u has DLPack's type of the host (1), and is neither inline nor on the host's cores",
               (unsigned)i);
  }
}

static void caps(kit *k) {
  const heddle_pdevice_desc *d = &k->desc;
  const kit_tables *t = &k->t;
  bool on_return = kit_inline(k);
  if ((d->caps & HEDDLE_CAP_VIEWS) != 0 && t->memory.view == NULL)
    kit_fail(k, "HEDDLE_CAP_VIEWS is set, and memory.view is missing");
  if ((d->caps & HEDDLE_CAP_NONCOHERENT) != 0 && (t->memory.flush == NULL || t->memory.invalidate == NULL))
    kit_fail(k, "HEDDLE_CAP_NONCOHERENT is set, and memory.flush or memory.invalidate is missing");
  if ((!on_return || (d->caps & HEDDLE_CAP_UNIFIED) != 0) && (t->memory.map == NULL || t->memory.unmap == NULL))
    kit_fail(k, "the device has memory to map, and memory.map or memory.unmap is missing");
  if (d->import_alignment != 0 && t->memory.import_host == NULL)
    kit_fail(k, "import_alignment is %llu, and memory.import_host is missing", (unsigned long long)d->import_alignment);
  if ((d->caps & HEDDLE_CAP_IMPORT_UNIFIED) != 0 && d->import_alignment == 0)
    kit_fail(k, "HEDDLE_CAP_IMPORT_UNIFIED is set, and import_alignment is 0: there are no imports");
  if (!on_return && !t->has_event) kit_fail(k, "the device is not inline, and the table event is missing");
  if (!on_return && t->fence.signal == NULL) kit_fail(k, "the device is not inline, and fence.signal is missing");
  if ((d->caps & HEDDLE_CAP_WAIT_BEFORE_SIGNAL) != 0 && t->fence.wait == NULL)
    kit_fail(k, "HEDDLE_CAP_WAIT_BEFORE_SIGNAL is set, and fence.wait is missing");
}

KIT_GROUP(kit_root, "root",
          {"root/open", "open_instance starts the driver far enough to list devices, or fails with words",
           KIT_STAGE_ENTRY, 0, 30, open_once, NULL},
          {"root/reopen", "an instance can be opened and closed again and again", KIT_STAGE_INSTANCE, 0, 30, reopen,
           NULL},
          {"root/two_instances", "instances are independent of each other", KIT_STAGE_INSTANCE, KIT_OPENS | KIT_REFUSES,
           30, two_at_once, NULL},
          {"root/device_count", "how many devices there are is fixed for the instance", KIT_STAGE_INSTANCE, 0, 0,
           counts, NULL},
          {"root/struct_size", "the plugin fills what HEDDLE_HAS says is there, and nothing behind it",
           KIT_STAGE_INSTANCE, 0, 0, describe_size, NULL},
          {"root/stable", "what device_describe says of a device is always the same", KIT_STAGE_INSTANCE, 0, 0, stable,
           NULL},
          {"root/numbers", "alignments are powers of two, max_streams is at least 1", KIT_STAGE_INSTANCE, 0, 0, numbers,
           NULL},
          {"root/texts", "names are one line of UTF-8 with a terminator", KIT_STAGE_INSTANCE, 0, 0, texts, NULL},
          {"root/uuids", "a uuid is all zero, or that of one physical device", KIT_STAGE_INSTANCE, 0, 0, uuids, NULL},
          {"root/type", "a third party's device uses HEDDLE_DEVICE_EXT and its own plugin name", KIT_STAGE_INSTANCE, 0,
           0, type, NULL},
          {"root/caps", "what a capability promises is there", KIT_STAGE_INSTANCE, 0, 0, caps, NULL});
