/* A plugin for QEMU that runs models of devices behind an emulated board.
 *
 *   -plugin device.so,ram=FILE,origin=ADDRESS,rung=ADDRESS,mailbox=ADDRESS,
 *           shared=ADDRESS,shared_end=ADDRESS,constants=ADDRESS,constants_end=ADDRESS[,layer=ADDRESS][,remove=1]
 *
 * Stock QEMU has no such devices, and a plugin cannot add any. But the board's RAM is a file that both have mapped:
 *   -machine memory-backend=shared -object memory-backend-file,id=shared,share=on,mem-path=FILE,size=...
 * Each time that the instruction at `rung` is about to be executed, the request in the mailbox is served: a register of a
 * model is read or written, and what its device does to memory has been done before the firmware goes on. Devices read
 * and write the memory from `shared` to `shared_end`, read what is from `constants` to `constants_end`, and nothing else.
 *
 * For devices that work while time passes, it passes with the instructions that the CPU executes, a cycle for each.
 * `layer` is where the firmware keeps the number of the layer under way.
 *
 * `origin` is the address of the file's first byte. With `remove` the file is deleted when QEMU has opened it: nothing is
 * left, however QEMU ends. */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mailbox.h"
#include "qemu_api.h"
#include "rack.h"

static uint64_t origin, rung, mailbox, shared, shared_end, constants, constants_end, remove_file, layer;
static const char *ram_name;
static uint8_t *ram;
static uint64_t ram_bytes;

static uint8_t *ram_at(uint64_t address, uint64_t bytes)
{
    const uint64_t offset = address - origin;
    return address >= origin && offset <= ram_bytes && bytes <= ram_bytes - offset ? ram + offset : NULL;
}

/* The guest is little endian, whatever this computer is. */
static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t get(size_t field)
{
    return word(ram_at(mailbox, sizeof(struct uaccel_mailbox)) + field);
}

static void put(size_t field, uint32_t value)
{
    uint8_t *const at = ram_at(mailbox, sizeof(struct uaccel_mailbox)) + field;
    for (unsigned i = 0; i < 4; ++i) {
        at[i] = (uint8_t)(value >> 8 * i & 0xFFu);
    }
}

static uint64_t executed; /* instructions, since the last request */

#define GET(field) get(offsetof(struct uaccel_mailbox, field))
#define PUT(field, value) put(offsetof(struct uaccel_mailbox, field), value)

static bool is_within(uint64_t begin, uint64_t end, uint32_t address, uint32_t bytes)
{
    return address >= begin && address < end && bytes <= end - address;
}

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    (void)context;
    if (!is_within(shared, shared_end, address, bytes) && !is_within(constants, constants_end, address, bytes)) {
        return -1;
    }
    memcpy(to, ram_at(address, bytes), bytes);
    return 0;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    (void)context;
    if (!is_within(shared, shared_end, address, bytes)) {
        return -1;
    }
    memcpy(ram_at(address, bytes), from, bytes);
    return 0;
}

static bool is_constant(void *context, uint32_t address)
{
    (void)context;
    return is_within(constants, constants_end, address, 1);
}

/* QEMU lets no plugin raise an interrupt; drivers poll. */
static void interrupt(void *context, int32_t level)
{
    (void)context;
    (void)level;
}

static uint32_t find(void)
{
    char name[UACCEL_MAILBOX_NAME_BYTES];
    const size_t field = offsetof(struct uaccel_mailbox, name);
    memcpy(name, ram_at(mailbox, sizeof(struct uaccel_mailbox)) + field, sizeof name);
    name[sizeof name - 1] = '\0';
    const struct uaccel_rack_device *const device = uaccel_rack_find(name);
    return device == NULL ? UINT32_MAX : (uint32_t)(device - uaccel_rack);
}

static void serve(unsigned int cpu, void *unused)
{
    const uint32_t request = GET(request);
    struct uaccel_rack_device *const device = GET(device) < uaccel_rack_count ? &uaccel_rack[GET(device)] : NULL;
    const uint8_t *const under_way = layer == 0 ? NULL : ram_at(layer, 4);
    (void)cpu;
    (void)unused;
    uaccel_rack_pass(executed);
    executed = 0;
    if (request == UACCEL_MAILBOX_WRITE && under_way != NULL) {
        uaccel_rack_layer(word(under_way));
    }
    if (request == UACCEL_MAILBOX_FIND) {
        PUT(value, find());
    } else if (request == UACCEL_MAILBOX_READ) {
        PUT(value, device == NULL ? UINT32_MAX : uaccel_rack_read(device, GET(offset)));
    } else if (request == UACCEL_MAILBOX_WRITE && device != NULL) {
        uaccel_rack_write(device, GET(offset), GET(value));
    } else if (request == UACCEL_MAILBOX_RESET) {
        uaccel_rack_reset();
    }
    PUT(request, UACCEL_MAILBOX_SERVED);
}

static void pass(unsigned int cpu, void *instructions)
{
    (void)cpu;
    executed += (uintptr_t)instructions;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    const size_t instructions = qemu_plugin_tb_n_insns(tb);
    (void)id;
    if (uaccel_rack_has_clock()) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, pass, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)instructions);
    }
    for (size_t i = 0; i < instructions; ++i) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        if (qemu_plugin_insn_vaddr(insn) == rung) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, serve, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
    }
}

/* When the CPU is there, so is its memory. */
static void remove_ram(qemu_plugin_id_t id, unsigned int cpu)
{
    (void)id;
    (void)cpu;
    unlink(ram_name);
}

static void end(qemu_plugin_id_t id, void *unused)
{
    (void)id;
    (void)unused;
    uaccel_rack_end();
}

static bool take_option(const char *option)
{
    static const struct {
        const char *name;
        uint64_t *value;
    } options[] = {
        {"origin=", &origin},         {"rung=", &rung},
        {"mailbox=", &mailbox},       {"shared=", &shared},
        {"shared_end=", &shared_end}, {"constants=", &constants},
        {"remove=", &remove_file},    {"constants_end=", &constants_end},
        {"layer=", &layer},
    };
    if (strncmp(option, "ram=", 4) == 0) {
        ram_name = option + 4;
        return true;
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i) {
        const size_t length = strlen(options[i].name);
        if (strncmp(option, options[i].name, length) == 0) {
            char *end;
            *options[i].value = strtoull(option + length, &end, 0);
            return end != option + length && *end == '\0';
        }
    }
    return false;
}

static bool map_ram(void)
{
    struct stat status;
    const int file = ram_name == NULL ? -1 : open(ram_name, O_RDWR);
    if (file < 0 || fstat(file, &status) != 0) {
        return false;
    }
    ram_bytes = (uint64_t)status.st_size;
    ram = mmap(NULL, (size_t)ram_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return ram != MAP_FAILED;
}

static bool is_in_ram(uint64_t begin, uint64_t end)
{
    return end >= begin && (end == begin || ram_at(begin, end - begin) != NULL);
}

int qemu_plugin_version = UACCEL_QEMU_PLUGIN_API;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
    static const struct uaccel_bus memory = {NULL, read_memory, write_memory, interrupt, NULL, NULL, is_constant};
    (void)info;
    for (int i = 0; i < argc; ++i) {
        if (!take_option(argv[i])) {
            fprintf(stderr, "device: unknown or bad option %s; the file that it was built from tells them\n", argv[i]);
            return 1;
        }
    }
    ram_name = ram_name == NULL ? NULL : strdup(ram_name);
    if (!map_ram()) {
        fprintf(stderr, "device: cannot open the board's memory, ram=%s\n", ram_name == NULL ? "" : ram_name);
        return 1;
    }
    if (!is_in_ram(mailbox, mailbox + sizeof(struct uaccel_mailbox)) || !is_in_ram(shared, shared_end) ||
        !is_in_ram(constants, constants_end)) {
        fprintf(stderr, "device: what the firmware shares with devices lies outside the memory of %s\n", ram_name);
        return 1;
    }
    if (!uaccel_rack_environment()) {
        return 1;
    }
    if (!uaccel_rack_begin(&memory)) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    if (remove_file != 0) {
        qemu_plugin_register_vcpu_init_cb(id, remove_ram);
    }
    return 0;
}
