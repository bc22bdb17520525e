/* Devices on the core's bus, out of a library. A model that does a job at once keeps the bus waiting for as long as the
 * hardware would have taken, at the first look at it; one that works while time passes does so with the core. RTL takes
 * turns with the core at each memory, and models do not. */
#ifndef UACCEL_SIMULATOR_DEVICES_H
#define UACCEL_SIMULATOR_DEVICES_H

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "image.h"
#include "machine_devices.h"
#include "memory.h"

namespace uaccel {

class Devices {
public:
    static constexpr uint32_t kWindow = 0x10000;

    struct Range {
        uint32_t begin, end;
    };

    /* `shared` is what devices may read and write, `constants` what they may read; `layer` is where the firmware keeps the
     * number of the layer under way, or 0. */
    void open(Memories *memories, const std::string &path, uint32_t base, Range shared, Range constants, uint32_t layer)
    {
        static Devices *closed_at_exit;
        memories_ = memories;
        base_ = base;
        shared_ = shared;
        constants_ = constants;
        layer_ = layer;
        void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        own_ = library == nullptr ? nullptr
                                  : static_cast<const uaccel_machine_devices *>(dlsym(library, "uaccel_machine_devices"));
        if (own_ == nullptr) {
            stop(dlerror());
        }
        static const uaccel_bus bus = {this,    read_memory, write_memory, [](void *, int32_t) {},
                                       nullptr, grants,      is_constant};
        if (!own_->begin(&bus)) {
            std::exit(3);
        }
        ready_.assign(own_->count(), 0);
        taken_.assign(own_->count(), 0);
        closed_at_exit = this;
        atexit([] { closed_at_exit->own_->end(); });
    }

    bool holds(uint32_t address) const
    {
        return own_ != nullptr && address >= base_ && (address - base_) / kWindow < ready_.size();
    }

    /* It is this cycle now. */
    void pass(uint64_t now)
    {
        if (own_ != nullptr) {
            own_->pass(now - passed_);
            passed_ = now;
        }
    }

    bool answers(uint32_t address, uint64_t now) const
    {
        return now >= ready_[(address - base_) / kWindow];
    }

    uint32_t read(uint32_t address, uint64_t now)
    {
        pass(now);
        return own_->read((address - base_) / kWindow, (address - base_) % kWindow);
    }

    void write(uint32_t address, uint32_t value, uint64_t now)
    {
        const uint32_t device = (address - base_) / kWindow;
        const Memory *const memory = layer_ == 0 ? nullptr : memories_->at(layer_, 4);
        pass(now);
        if (memory != nullptr) {
            own_->layer(memory->word(layer_));
        }
        own_->write(device, (address - base_) % kWindow, value);
        const uint64_t taken = own_->cycles(device);
        ready_[device] = now + (taken > taken_[device] ? taken - taken_[device] : 0);
        taken_[device] = taken;
    }

    void reset()
    {
        if (own_ != nullptr) {
            masters_.clear();
            own_->reset();
            ready_.assign(ready_.size(), 0);
            taken_.assign(taken_.size(), 0);
        }
    }

private:
    struct Master {
        const void *who;
        Bus bus;
    };

    Bus &bus_of(const void *who)
    {
        for (Master &master : masters_) {
            if (master.who == who) {
                return master.bus;
            }
        }
        masters_.push_back({who, Bus(kBusesOfCore + int(masters_.size()))});
        return masters_.back().bus;
    }

    /* A beat is an access of as many words as it has. What lies in no memory is refused at once. */
    static bool grants(void *context, const void *who, uint32_t address, uint32_t bytes, bool last, uint64_t ahead)
    {
        auto *const self = static_cast<Devices *>(context);
        Memory *const memory = self->memories_->at(address);
        return self->bus_of(who).answers(memory, last, self->passed_ + ahead, int(bytes + 3) / 4);
    }

    static bool within(Range range, uint32_t address, uint32_t bytes)
    {
        return address >= range.begin && address <= range.end && bytes <= range.end - address;
    }

    static bool is_constant(void *context, uint32_t address)
    {
        return within(static_cast<const Devices *>(context)->constants_, address, 1);
    }

    static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
    {
        const auto *const self = static_cast<Devices *>(context);
        const bool may = within(self->shared_, address, bytes) || within(self->constants_, address, bytes);
        const Memory *const memory = may ? self->memories_->at(address, bytes) : nullptr;
        if (memory == nullptr) {
            return -1;
        }
        memcpy(to, memory->bytes.data() + (address - memory->origin), bytes);
        return 0;
    }

    static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
    {
        const auto *const self = static_cast<Devices *>(context);
        Memory *const memory = within(self->shared_, address, bytes) ? self->memories_->at(address, bytes) : nullptr;
        if (memory == nullptr) {
            return -1;
        }
        memcpy(memory->bytes.data() + (address - memory->origin), from, bytes);
        return 0;
    }

    const uaccel_machine_devices *own_ = nullptr;
    Memories *memories_ = nullptr;
    uint32_t base_ = 0, layer_ = 0;
    Range shared_{}, constants_{};
    std::vector<Master> masters_;
    uint64_t passed_ = 0;
    std::vector<uint64_t> ready_; /* when each answers again */
    std::vector<uint64_t> taken_; /* cycles of all its jobs so far */
};

} // namespace uaccel

#endif
