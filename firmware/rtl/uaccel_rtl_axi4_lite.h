/* Registers behind AXI4-Lite: the bench is the master. Without a seed address and data of a write are offered together,
 * and answers are taken at once. With one, either comes first, and an answer waits. */
#ifndef UACCEL_RTL_AXI4_LITE_H
#define UACCEL_RTL_AXI4_LITE_H

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

template <class Ports> class Axi4LiteRegisters : public Registers {
  public:
    Axi4LiteRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports), b_(bench, "BVALID"), r_(bench, "RVALID")
    {
    }

    void reset() override
    {
        p_.awvalid() = 0;
        p_.wvalid() = 0;
        p_.bready() = 0;
        p_.arvalid() = 0;
        p_.rready() = 0;
        writes_ = reads_ = NONE;
        b_.reset();
        r_.reset();
    }

    bool write(uint32_t offset, uint32_t value) override
    {
        used_ |= offset;
        writes_ = 2;
        const uint32_t address_waits = bench_.disturbance.way(4), data_waits = bench_.disturbance.way(4);
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            if (i == address_waits) {
                p_.awaddr() = static_cast<decltype(p_.awaddr() + 0)>(offset);
                p_.awprot() = 0;
                p_.awvalid() = 1;
            }
            if (i == data_waits) {
                p_.wdata() = value;
                p_.wstrb() = 15;
                p_.wvalid() = 1;
            }
            p_.bready() = bench_.disturbance.way(3) != 1;
            bench_.cycle_begins();
            const bool address = p_.awvalid() && p_.awready();
            const bool data = p_.wvalid() && p_.wready();
            const bool answer = p_.bvalid() && p_.bready();
            const bool good = p_.bresp() == 0;
            bench_.cycle_ends();
            p_.awvalid() = p_.awvalid() && !address;
            p_.wvalid() = p_.wvalid() && !data;
            writes_ -= address + data;
            if (answer) {
                reset();
                return good;
            }
        }
        bench_.violates("a write to a register is never answered");
        return false;
    }

    bool read(uint32_t offset, uint32_t &value) override
    {
        used_ |= offset;
        reads_ = 1;
        p_.araddr() = static_cast<decltype(p_.araddr() + 0)>(offset);
        p_.arprot() = 0;
        p_.arvalid() = 1;
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            p_.rready() = bench_.disturbance.way(3) != 1;
            bench_.cycle_begins();
            const bool address = p_.arvalid() && p_.arready();
            const bool answer = p_.rvalid() && p_.rready();
            const bool good = p_.rresp() == 0;
            const uint32_t data = p_.rdata();
            bench_.cycle_ends();
            p_.arvalid() = p_.arvalid() && !address;
            reads_ -= address;
            if (answer) {
                reset();
                value = data;
                return good;
            }
        }
        bench_.violates("a read of a register is never answered");
        return false;
    }

    void sample() override
    {
        b_.sample(p_.bvalid(), p_.bready(), {p_.bresp()});
        r_.sample(p_.rvalid(), p_.rready(), {p_.rdata(), p_.rresp()});
        if (bench_.resets()) {
            return;
        }
        if (p_.bvalid() && writes_ != 0) {
            bench_.violates("BVALID answers before address and data of a write were taken");
        }
        if (p_.rvalid() && reads_ != 0) {
            bench_.violates("RVALID answers before the address of a read was taken");
        }
        if ((p_.bvalid() && p_.bresp() == 1) || (p_.rvalid() && p_.rresp() == 1)) {
            bench_.violates("EXOKAY is no answer of AXI4-Lite");
        }
    }

    void drive() override
    {
        if (!p_.awvalid()) {
            spoil(bench_, p_.awaddr(), used_);
        }
        if (!p_.wvalid()) {
            spoil(bench_, p_.wdata(), 3);
        }
        if (!p_.arvalid()) {
            spoil(bench_, p_.araddr(), used_);
        }
    }

    void probe() override
    {
        Probe<Axi4LiteRegisters>(bench_, *this).look();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("AWVALID", 1, p_.awvalid());
        visit("AWADDR", 4, p_.awaddr());
        visit("WVALID", 1, p_.wvalid());
        visit("WDATA", 3, p_.wdata());
        visit("BREADY", 1, p_.bready());
        visit("ARVALID", 1, p_.arvalid());
        visit("ARADDR", 4, p_.araddr());
        visit("RREADY", 1, p_.rready());
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("AWREADY", p_.awready());
        visit("WREADY", p_.wready());
        visit("BVALID", p_.bvalid());
        visit("BRESP", p_.bresp());
        visit("ARREADY", p_.arready());
        visit("RVALID", p_.rvalid());
        visit("RRESP", p_.rresp());
        visit("RDATA", p_.rdata());
    }

  private:
    Bench &bench_;
    Ports p_;
    Channel b_, r_;
    static constexpr uint32_t NONE = UINT32_MAX;      /* no access is under way */
    uint32_t writes_ = NONE, reads_ = NONE;           /* how many of its offers were not taken yet */
    uint32_t used_ = 0;                               /* bits of offsets that there are */
};

} // namespace uaccel_rtl

#endif
