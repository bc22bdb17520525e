/* A machine around a core as RTL: memories, a UART, a counter of instructions, and what resets it.
 *
 * Usage: machine FIRMWARE.elf NAME=VALUE...
 *   memory=ORIGIN,BYTES,WRITABLE,FIRST,NEXT   as often as there are memories; the core starts at the first
 *   console=BASE,IRQ    reset=ADDRESS    counter=ADDRESS    uncounted=BEGIN,END
 *   marks=FILE,MOST     what is executed between readings of the counter, for so many of them
 *   devices=LIBRARY,BASE,SHARED,SHARED_END,CONSTANTS,CONSTANTS_END,LAYER   where the first one's registers lie, what they
 *                       reach, and where the number of the layer is
 *   status=FILE         kept up to date with the number of cycles so far */
#include <fcntl.h>

#include <cinttypes>
#include <ctime>
#include <memory>

#include "Vuaccel_machine.h"
#include "Vuaccel_machine_VexRiscv.h"
#include "Vuaccel_machine_uaccel_machine.h"
#include "devices.h"
#include "image.h"
#include "line.h"
#include "marks.h"
#include "memory.h"
#include "verilated.h"

namespace uaccel {

enum : uint32_t {
    kFirstDevice = 0x80000000u, /* the core caches nothing from here on */
    kData = 0,                  /* registers of the console */
    kReceiveInterrupt = 4,
    kResetWord = 0x7777
};

constexpr uint64_t kTellCycles = 1u << 17;
constexpr unsigned kBurst = 2; /* Wishbone's cycle type; 7 ends a burst, 0 is no burst */

class Machine {
public:
    explicit Machine(const std::string &firmware) : parts_(read_elf(firmware)) {}

    void set(const std::string &name, const std::string &value);

    [[noreturn]] void run()
    {
        start();
        for (;;) {
            cycle();
        }
    }

private:
    void start();
    void cycle();
    void fetch();
    void data();
    void observe();
    void tell();
    uint32_t read(uint32_t address);
    void write(uint32_t address, uint32_t value);

    std::vector<Part> parts_;
    std::unique_ptr<Vuaccel_machine> top_ = std::make_unique<Vuaccel_machine>();
    Memories memories_;
    Bus fetching_{0}, accessing_{1};
    Devices devices_;
    Line line_;
    Marks marks_;
    uint32_t console_ = 0, console_irq_ = 0, reset_ = 0, counter_ = 0;
    bool receives_ = false, resets_ = false;
    uint64_t cycles_ = 0, counted_ = 0;
    int status_ = -1;
};

static std::vector<uint32_t> numbers(const std::string &text)
{
    std::vector<uint32_t> found;
    for (size_t at = 0; at < text.size();) {
        const size_t comma = text.find(',', at);
        found.push_back(static_cast<uint32_t>(strtoul(text.substr(at, comma - at).c_str(), nullptr, 0)));
        at = comma == std::string::npos ? text.size() : comma + 1;
    }
    return found;
}

void Machine::set(const std::string &name, const std::string &value)
{
    const std::vector<uint32_t> n = numbers(value);
    if (name == "memory" && n.size() == 5) {
        memories_.all.push_back({n[0], n[2] != 0, int(n[3]), int(n[4]), std::vector<uint8_t>(n[1])});
    } else if (name == "console" && n.size() == 2) {
        console_ = n[0];
        console_irq_ = n[1];
    } else if (name == "reset" && n.size() == 1) {
        reset_ = n[0];
    } else if (name == "counter" && n.size() == 1) {
        counter_ = n[0];
    } else if (name == "uncounted" && n.size() == 2) {
        marks_.leave_out(n[0], n[1]);
    } else if (name == "marks") {
        const size_t comma = value.rfind(',');
        marks_.write_to(value.substr(0, comma), atoi(value.c_str() + comma + 1));
    } else if (name == "devices") {
        const size_t comma = value.find(',');
        const std::vector<uint32_t> at = numbers(value.substr(comma + 1));
        if (at.size() != 6) {
            stop("devices wants seven values: " + value);
        }
        devices_.open(&memories_, value.substr(0, comma), at[0], {at[1], at[2]}, {at[3], at[4]}, at[5]);
    } else if (name == "status") {
        status_ = open(value.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    } else {
        stop("no such setting: " + name + "=" + value);
    }
}

void Machine::start()
{
    memories_.load(parts_);
    devices_.reset();
    fetching_.reset();
    accessing_.reset();
    receives_ = resets_ = false;
    top_->externalResetVector = memories_.all.at(0).origin;
    top_->externalInterruptArray = 0;
    top_->iBusWishbone_ACK = top_->dBusWishbone_ACK = 0;
    top_->reset = 1;
    for (int i = 0; i < 8; ++i) {
        top_->clk = 1;
        top_->eval();
        top_->clk = 0;
        top_->eval();
    }
    top_->reset = 0;
    top_->eval();
}

/* The core's outputs are those of this cycle; its inputs are set, and the clock's edge takes them. */
void Machine::cycle()
{
    data();
    fetch();
    devices_.pass(cycles_ + 1);
    observe();
    top_->externalInterruptArray = receives_ && line_.has_arrived() ? 1u << console_irq_ : 0;
    top_->clk = 1;
    top_->eval();
    top_->clk = 0;
    top_->eval();
    if ((++cycles_ & (kTellCycles - 1)) == 0) {
        tell();
    }
    if (resets_) {
        line_.flush();
        start();
    }
}

void Machine::fetch()
{
    top_->iBusWishbone_ACK = 0;
    if (!top_->iBusWishbone_CYC || !top_->iBusWishbone_STB) {
        return;
    }
    const uint32_t address = top_->iBusWishbone_ADR << 2;
    Memory *const memory = memories_.at(address, 4);
    if (fetching_.answers(memory, top_->iBusWishbone_CTI != kBurst, cycles_)) {
        top_->iBusWishbone_ACK = 1;
        top_->iBusWishbone_DAT_MISO = memory != nullptr ? memory->word(address) : 0; /* which is no instruction */
    }
}

void Machine::data()
{
    top_->dBusWishbone_ACK = 0;
    if (!top_->dBusWishbone_CYC || !top_->dBusWishbone_STB) {
        return;
    }
    const uint32_t address = top_->dBusWishbone_ADR << 2;
    Memory *const memory = address < kFirstDevice ? memories_.at(address, 4) : nullptr;
    if (devices_.holds(address) && !devices_.answers(address, cycles_)) {
        return;
    }
    if (!accessing_.answers(memory, top_->dBusWishbone_CTI != kBurst, cycles_)) {
        return;
    }
    top_->dBusWishbone_ACK = 1;
    if (memory == nullptr) {
        if (top_->dBusWishbone_WE) {
            write(address, top_->dBusWishbone_DAT_MOSI);
        } else {
            top_->dBusWishbone_DAT_MISO = read(address);
        }
    } else if (!top_->dBusWishbone_WE) {
        top_->dBusWishbone_DAT_MISO = memory->word(address);
    } else if (memory->writable) {
        memory->put(address, top_->dBusWishbone_DAT_MOSI, top_->dBusWishbone_SEL);
    }
}

void Machine::observe()
{
    const auto *const core = top_->uaccel_machine->core;
    if (core->lastStageIsFiring) {
        marks_.retired(core->lastStagePc, core->lastStageInstruction);
    } else if (top_->dBusWishbone_CYC) {
        const bool device = top_->dBusWishbone_ADR << 2 >= kFirstDevice;
        (device ? marks_.waited_for_devices : marks_.waited_for_data)++;
    } else if (top_->iBusWishbone_CYC) {
        marks_.waited_for_code++;
    }
    if (core->CsrPlugin_inWfi && !line_.has_arrived()) {
        tell();
        line_.wait();
    }
}

void Machine::tell()
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%020" PRIu64 "\n", cycles_);
    line_.flush();
    if (status_ >= 0 && pwrite(status_, text, static_cast<size_t>(length), 0) < 0) {
        status_ = -1;
    }
}

uint32_t Machine::read(uint32_t address)
{
    if (address == console_ + kData) {
        return line_.take();
    }
    if (address == counter_) {
        counted_ = marks_.count;
        marks_.mark(cycles_);
        return static_cast<uint32_t>(counted_);
    }
    if (address == counter_ + 4) {
        return static_cast<uint32_t>(counted_ >> 32);
    }
    if (devices_.holds(address)) {
        return devices_.read(address, cycles_);
    }
    char words[80];
    snprintf(words, sizeof words, "the core reads 0x%08x, where nothing is", address);
    stop(words);
}

void Machine::write(uint32_t address, uint32_t value)
{
    if (address == console_ + kData) {
        line_.send(static_cast<uint8_t>(value));
    } else if (address == console_ + kReceiveInterrupt) {
        receives_ = value != 0;
    } else if (address == reset_) {
        resets_ = value == kResetWord;
    } else if (devices_.holds(address)) {
        devices_.write(address, value, cycles_);
    } else {
        char words[80];
        snprintf(words, sizeof words, "the core writes 0x%08x, where nothing is", address);
        stop(words);
    }
}

} // namespace uaccel

int main(int count, char **words)
{
    if (count < 2) {
        uaccel::stop("usage: machine FIRMWARE.elf NAME=VALUE...");
    }
    uaccel::Machine machine(words[1]);
    for (int i = 2; i < count; ++i) {
        const std::string word = words[i];
        const size_t equals = word.find('=');
        machine.set(word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1));
    }
    machine.run();
}
