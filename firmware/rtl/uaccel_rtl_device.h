/* The device itself: what firmware/include/uaccel_device.h asks of a model, of a verilated module. */
#ifndef UACCEL_RTL_DEVICE_H
#define UACCEL_RTL_DEVICE_H

#include <signal.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "uaccel_rtl.h"
#include "verilated.h"
#if defined UACCEL_RTL_FST
#include "verilated_fst_c.h"
#elif defined UACCEL_RTL_VCD
#include "verilated_vcd_c.h"
#endif
#ifdef UACCEL_RTL_COVERAGE
#include "verilated_cov.h"
#endif

namespace uaccel_rtl {

#if defined UACCEL_RTL_FST
typedef VerilatedFstC Waves;
#elif defined UACCEL_RTL_VCD
typedef VerilatedVcdC Waves;
#endif

/* What the description says of the module. */
struct Traits {
    const char *name;
    uint32_t start;        /* the register whose write starts a job */
    uint32_t version;      /* the one that tells the version */
    uint32_t reset_active; /* the level of reset */
    bool tells_busy;
};

/* Why the RTL wants the simulation to end, if it does. Verilator itself would end the process, and with `$finish` by a
 * status that says that all is well. */
inline std::string &end_of_simulation()
{
    static std::string why;
    return why;
}

/* The same where Verilator cannot go on. */
struct Ended : std::exception {
    explicit Ended(const std::string &why) : why_(why) {}
    const char *what() const noexcept override
    {
        return why_.c_str();
    }

  private:
    std::string why_;
};

/* "NAME=VALUE,NAME=VALUE" in an environment variable: the value for this name, or nothing. */
inline std::string setting(const char *variable, const char *name)
{
    const char *const given = std::getenv(variable);
    const std::string text = given == nullptr ? "" : std::string(",") + given + ",";
    const std::string wanted = std::string(",") + name + "=";
    const size_t at = text.find(wanted);
    if (at == std::string::npos) {
        return "";
    }
    return text.substr(at + wanted.size(), text.find(',', at + 1) - at - wanted.size());
}

/* The signal that asked the process to end: it ends between two cycles, and so closes its waveform. */
inline volatile sig_atomic_t &asked_to_end()
{
    static volatile sig_atomic_t number = 0;
    return number;
}

/* Unless the process has its own way with them, as an emulator has. A second one ends it at once. */
inline void take_signals()
{
    struct sigaction now, taken = {};
    taken.sa_handler = [](int number) { asked_to_end() = number; };
    taken.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
            (void)sigaction(number, &taken, nullptr);
        }
    }
}

/* Of UACCEL_DEVICE_STALLS; 0 where it says nothing. */
inline bool seed_of_stalls(const char *name, uint32_t &seed)
{
    const char *const given = std::getenv("UACCEL_DEVICE_STALLS");
    if (given == nullptr || *given == '\0') {
        return true;
    }
    const std::string digits = given;
    if (digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) {
        std::fprintf(stderr, "%s: UACCEL_DEVICE_STALLS is '%s'; wanted a seed from 0 to 999999999\n", name, given);
        return false;
    }
    seed = static_cast<uint32_t>(std::stoul(digits)) * 2654435769u;
    seed = seed == 0 ? ~seed : seed;
    return true;
}

/* Top is the verilated module, Pins has its clock, reset, interrupt and busy. */
template <class Top, class Pins> class Device : public Bench {
  public:
    explicit Device(const Traits &traits) : traits_(traits) {}

    Top *top()
    {
        return top_.get();
    }

    /* The module is there after this; adapters can be put to its ports. */
    bool make()
    {
        context_.reset(new VerilatedContext);
        context_->randReset(2); /* what nobody resets is random, and the same in every run */
        context_->randSeed(1);
#if defined UACCEL_RTL_FST || defined UACCEL_RTL_VCD
        context_->traceEverOn(true);
#endif
        top_.reset(new Top{context_.get(), traits_.name});
        pins_.top = top_.get();
        uint32_t seed = 0;
        return seed_of_stalls(traits_.name, seed) && open_waves();
    }

    void connect(std::unique_ptr<Registers> registers, std::vector<std::unique_ptr<Memory>> memories)
    {
        registers_ = std::move(registers);
        memories_ = std::move(memories);
    }

    void reset(const uaccel_bus *bus)
    {
        bus_ = bus;
        fault_ = UACCEL_FAULT_NONE;
        disturbance.hold(false);
        uint32_t seed = 0;
        broken_ = !seed_of_stalls(traits_.name, seed);
        disturbance.seed(seed);
        line_ = 0;
        ahead_ = 0;
        registers_->reset();
        for (auto &memory : memories_) {
            memory->reset();
        }
        resets_ = true;
        rested_ = 0;
        reset_ends_ = now_ + RESET_CYCLES;
        pins_.reset() = traits_.reset_active;
        pass(RESET_CYCLES);
        pins_.reset() = !traits_.reset_active;
        resets_ = false;
        pass(1);
    }

    uint32_t read(uint32_t offset)
    {
        uint32_t value = 0;
        accesses_ = true;
        rested_ = 0;
        const bool there = !broken_ && registers_->read(offset, value) && !broken_;
        accesses_ = false;
        if (!there) {
            return UINT32_MAX;
        }
        return fault_ == UACCEL_FAULT_VERSION && offset == traits_.version ? value + 0x00010000u : value;
    }

    void write(uint32_t offset, uint32_t value)
    {
        const bool hangs = fault_ == UACCEL_FAULT_HANG && offset == traits_.start;
        if (hangs) {
            disturbance.hold(true); /* it begins, and its memory never answers */
        }
        if (!broken_ && !(hangs && memories_.empty())) {
            accesses_ = true;
            rested_ = 0;
            registers_->write(offset, value);
            accesses_ = false;
        }
    }

    /* Cycles that an access of a register took are those that come next. Where the module tells that it rests, time
     * that nothing happens in is not simulated. */
    void tick(uint64_t cycles)
    {
        const uint64_t had = ahead_ < cycles ? ahead_ : cycles;
        ahead_ -= had;
        for (uint64_t i = had; i < cycles; ++i) {
            rested_ = rests() ? rested_ + 1 : 0;
            if (broken_ || rested_ > SETTLES) {
                now_ += cycles - i;
                context_->timeInc(2 * HALF * (cycles - i));
                return;
            }
            pass(1);
        }
    }

    void layer(uint32_t layer)
    {
        layer_ = layer;
    }

    void inject(uaccel_device_fault fault)
    {
        fault_ = fault;
    }

    uint64_t cycles() const
    {
        return now_;
    }

    void close()
    {
        goes_on([this] { top_->final(); });
#if defined UACCEL_RTL_FST || defined UACCEL_RTL_VCD
        if (waves_) {
            goes_on([this] { waves_->close(); });
        }
#endif
#ifdef UACCEL_RTL_COVERAGE
        const std::string folder = setting("UACCEL_DEVICE_COVERAGE", traits_.name);
        if (!folder.empty()) {
            const std::string file = folder + "/" + traits_.name + "-" + std::to_string(getpid()) + ".dat";
            context_->coveragep()->write(file.c_str());
        }
#endif
    }

    void cycle_begins() override
    {
        if (asked_to_end() != 0) {
            std::exit(128 + asked_to_end());
        }
        pins_.clock() = 0;
        goes_on([this] { top_->eval(); });
        dump();
        probe();
        registers_->sample();
        for (auto &memory : memories_) {
            memory->sample();
        }
        const bool rings = !resets_ && pins_.interrupt() != 0 && line_ == 0;
        if (rings || (!resets_ && traits_.tells_busy && pins_.busy() == 0)) {
            require_answers();
        }
        const int32_t line = !resets_ && pins_.interrupt() != 0 ? 1 : 0; /* anything before the reset is over */
        if (line != line_) {
            line_ = line;
            bus_->interrupt(bus_->context, line);
        }
    }

    void cycle_ends() override
    {
        context_->timeInc(HALF);
        pins_.clock() = 1;
        goes_on([this] { top_->eval(); });
        dump();
        context_->timeInc(HALF);
        now_++;
        registers_->drive();
        for (auto &memory : memories_) {
            memory->drive();
        }
        ahead_ += accesses_ ? 1 : 0;
    }

    bool load(uint32_t address, void *to, uint32_t bytes) override
    {
        return fault_ != UACCEL_FAULT_ERROR && bus_->read(bus_->context, address, to, bytes) == 0;
    }

    bool store(uint32_t address, const void *from, uint32_t bytes) override
    {
        return fault_ != UACCEL_FAULT_ERROR && bus_->write(bus_->context, address, from, bytes) == 0;
    }

    bool shares() const override
    {
        return bus_->grants != nullptr;
    }

    bool granted(const void *master, uint32_t address, uint32_t bytes, bool last) override
    {
        return bus_->grants(bus_->context, master, address, bytes, last, ahead_);
    }

    uint32_t refusal() override
    {
        return (fault_ == UACCEL_FAULT_ERROR) == (disturbance.way(2) == 0) ? 2 : 3;
    }

    bool resets() const override
    {
        return resets_;
    }

    bool has_reset() const override
    {
        return resets_ && now_ + 1 == reset_ends_;
    }

    void settle() override
    {
        goes_on([this] { top_->eval(); });
    }

    uint64_t now() const override
    {
        return now_;
    }

    bool constant(uint32_t address) const override
    {
        return bus_->constant != nullptr && bus_->constant(bus_->context, address);
    }

    void violates(const char *what) override
    {
        if (!broken_) {
            std::fprintf(stderr, "%s: cycle %llu: %s\n", traits_.name, static_cast<unsigned long long>(now_), what);
        }
        broken_ = true;
    }

  private:
    enum { RESET_CYCLES = 4, HALF = 500 }; /* picoseconds: cycle N of the waveform is at N ns */
    enum { SETTLES = 4 }; /* cycles that are simulated when the module rests: its interrupt may come behind its end */

    template <class Step> bool goes_on(const Step &step)
    {
        std::string why;
        try {
            step();
        } catch (const Ended &ended) {
            why = ended.what();
        }
        why += end_of_simulation();
        end_of_simulation().clear();
        if (!why.empty()) {
            violates(why.c_str());
        }
        return why.empty();
    }

    void pass(uint64_t cycles)
    {
        for (uint64_t i = 0; i < cycles; ++i) {
            cycle_begins();
            cycle_ends();
        }
    }

    /* Who is told that a job has ended reads what it wrote. */
    void require_answers()
    {
        for (auto &memory : memories_) {
            if (memory->owes()) {
                violates("it rests, or interrupts, before memory has answered to what it wrote");
            }
        }
    }

    /* In some cycles, as it takes time. What it changes is as before when it ends, and no waveform shows it. */
    void probe()
    {
#ifndef UACCEL_RTL_COVERAGE
        const uint32_t drawn = static_cast<uint32_t>(now_ * 2654435769u) >> 28;
        if (!resets_ && !broken_ && drawn < (disturbance.wanted() ? 4 : 1)) {
            registers_->probe();
            for (auto &memory : memories_) {
                memory->probe();
            }
        }
#endif
    }

    bool rests()
    {
        if (!traits_.tells_busy || pins_.busy() != 0 || !registers_->idle()) {
            return false;
        }
        for (auto &memory : memories_) {
            if (!memory->idle()) {
                return false;
            }
        }
        return true;
    }

    bool open_waves()
    {
#if defined UACCEL_RTL_FST || defined UACCEL_RTL_VCD
        const std::string file = setting("UACCEL_DEVICE_WAVES", traits_.name);
        const char *const layer = std::getenv("UACCEL_DEVICE_WAVES_LAYER");
        wanted_ = layer == nullptr || *layer == '\0' ? ANY : std::strtoull(layer, nullptr, 10);
        std::FILE *const there = file.empty() ? nullptr : std::fopen(file.c_str(), "r");
        if (there != nullptr) { /* it is that of this run's first session */
            std::fclose(there);
        } else if (!file.empty()) {
            waves_.reset(new Waves);
            top_->trace(waves_.get(), 99);
            waves_->open(file.c_str());
            if (!waves_->isOpen()) {
                std::fprintf(stderr, "%s: cannot write the waveform to %s\n", traits_.name, file.c_str());
                return false;
            }
            take_signals();
        }
#endif
        return true;
    }

    void dump()
    {
#if defined UACCEL_RTL_FST || defined UACCEL_RTL_VCD
        if (waves_ && (wanted_ == ANY || wanted_ == layer_)) {
            if (!goes_on([this] { waves_->dump(context_->time()); })) { /* it cannot be written */
                (void)waves_.release();
            }
        }
#endif
    }

    static constexpr uint64_t ANY = UINT64_MAX;

    const Traits traits_;
    Pins pins_;
    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Top> top_;
    std::unique_ptr<Registers> registers_;
    std::vector<std::unique_ptr<Memory>> memories_;
#if defined UACCEL_RTL_FST || defined UACCEL_RTL_VCD
    std::unique_ptr<Waves> waves_;
    uint64_t wanted_ = ANY;
#endif
    const uaccel_bus *bus_ = nullptr;
    uaccel_device_fault fault_ = UACCEL_FAULT_NONE;
    bool broken_ = false;
    bool resets_ = false;
    int32_t line_ = 0;
    uint32_t layer_ = UINT32_MAX;
    uint64_t now_ = 0, reset_ends_ = 0, rested_ = 0;
    bool accesses_ = false;
    uint64_t ahead_ = 0; /* cycles of accesses for which no time has passed yet */
};

} // namespace uaccel_rtl

#endif
