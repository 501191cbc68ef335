"""Products by oneDNN where MKL is slow, and float32 all the same."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Attention, ScaledDot
from regard.attention import attention as attention_module
from regard.layers import products
from regard.layers.products import fastest_products, onednn_is_faster

AMD = "vendor_id\t: AuthenticAMD\n"


@pytest.fixture(autouse=True)
def _as_it_was():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)
    onednn_is_faster.cache_clear()


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """machine(cpuinfo, capability, amx): as if this were the CPU."""

    def described(cpuinfo=AMD, capability="AVX512", amx=False):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
        (tmp_path / "cpuinfo").write_text(cpuinfo)
        monkeypatch.setattr(products, "CPUINFO", tmp_path / "cpuinfo")
        onednn_is_faster.cache_clear()

    return described


def precision_within():
    with fastest_products():
        return torch.get_float32_matmul_precision()


def test_amd_with_avx_512_takes_onednn_for_a_while(machine):
    machine()
    torch.set_float32_matmul_precision("highest")
    assert precision_within() == "medium"
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    "other", [{"cpuinfo": "vendor_id: GenuineIntel"}, {"capability": "AVX2"}, {"amx": True}]
)
def test_any_other_cpu_stays_as_it_is(machine, other):
    machine(**other)
    torch.set_float32_matmul_precision("highest")
    assert precision_within() == "highest"


def test_products_are_as_exact_as_before():
    one, other = torch.randn(64, 300), torch.randn(300, 70)
    exact = (one.double() @ other.double()).float()
    before = (one @ other - exact).abs().max()
    with fastest_products():
        assert (one @ other - exact).abs().max() <= 4 * before


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_reads_and_learns_the_same_while_precision_is_lowered(causal, monkeypatch):
    monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", 0)
    monkeypatch.setattr(attention_module, "MAX_PLAIN_CAUSAL_SCORES", 0)
    tensors = [torch.randn(2, 3, 9, 7, requires_grad=True) for _ in range(3)]
    tensors[1].requires_grad_(False)
    mask = attention_module.Causal() if causal else None
    read = []
    for precision in ("highest", "medium"):
        torch.set_float32_matmul_precision(precision)
        context = Attention(ScaledDot())(*tensors, mask).context
        read.append((context, *torch.autograd.grad(context.sum(), tensors[::2])))
        assert torch.get_float32_matmul_precision() == precision
    for before, after in zip(*read, strict=True):
        assert_close(after, before)
