/* conformance/root.c: the group "root": instances, how many devices there are, and what is said of them. */
#include <string.h>

#include "conformance/kit_side.h"

static void open_once(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_complete(&k->root, &k->t, why)) kit_skip(k, "%s (load/functions)", why);
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

static void numbers(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_device_numbers(k->index, &k->desc, why)) kit_fail(k, "%s", why);
}

static void texts(kit *k) {
  char why[CONTRACT_TEXT];
  for (uint32_t i = 0; i < k->n_devices; i++) {
    heddle_pdevice_desc d;
    describe(k, k->instance, i, &d);
    if (!contract_device_texts(i, &d, why)) kit_fail(k, "%s", why);
  }
}

static void uuids(kit *k) {
  char why[CONTRACT_TEXT];
  for (uint32_t i = 1; i < k->n_devices; i++)
    for (uint32_t j = 0; j < i; j++) {
      heddle_pdevice_desc a, b;
      describe(k, k->instance, j, &a);
      describe(k, k->instance, i, &b);
      if (!contract_device_pair(j, &a, i, &b, why)) kit_fail(k, "%s", why);
    }
}

static void type(kit *k) {
  char why[CONTRACT_TEXT];
  for (uint32_t i = 0; i < k->n_devices; i++) {
    heddle_pdevice_desc d;
    describe(k, k->instance, i, &d);
    if (!contract_device_type(i, &d, k->root.name, why)) kit_fail(k, "%s", why);
  }
}

static void caps(kit *k) {
  char why[CONTRACT_TEXT];
  if (!contract_device_caps(k->index, &k->desc, &k->t, why)) kit_fail(k, "%s", why);
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
