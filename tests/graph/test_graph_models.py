"""Whole models against torch: every value and every gradient, to ten digits."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose

from regard.graph import (
    Graph,
    concatenate,
    cross_entropy,
    embedding,
    parameter,
    relu,
    sigmoid,
    softmax,
    sqrt,
    stack,
    tanh,
    where,
)


def test_a_perceptron_with_two_hidden_layers_agrees_with_torch(agree, random):
    ids = [1, 0, 1, 1, 0]

    def ours(x, w1, b1, w2, b2, w3, b3):
        return cross_entropy(tanh(relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3, ids)

    def theirs(x, w1, b1, w2, b2, w3, b3):
        hidden = torch.tanh(torch.relu(x @ w1 + b1) @ w2 + b2)
        return F.cross_entropy(hidden @ w3 + b3, torch.tensor(ids))

    shapes = [(5, 3), (3, 7), (7,), (7, 11), (11,), (11, 2), (2,)]
    agree(ours, theirs, *(random(*shape) for shape in shapes))


def test_five_steps_of_a_recurrent_language_model_agree_with_torch(agree, random):
    """h_t = tanh(W_h h_{t−1} + W_e x_t + b), and cross-entropy of the next word at every step"""
    words, following = np.array([3, 1, 4, 1, 5]), np.array([1, 4, 1, 5, 6])

    def ours(table, w_h, w_e, b, start, output):
        hidden, states = start, []
        for x in embedding(table, words):
            hidden = tanh(w_h @ hidden + w_e @ x + b)
            states.append(hidden)
        return cross_entropy(stack(states) @ output.mT, following)

    def theirs(table, w_h, w_e, b, start, output):
        cell = (table[torch.tensor(words)], start[None], w_e, w_h, b, torch.zeros_like(b))
        inputs, first, *weights = cell
        states, _ = torch.rnn_tanh(inputs, first, weights, True, 1, 0.0, False, False, False)
        return F.cross_entropy(states @ output.mT, torch.tensor(following))

    shapes = [(7, 3), (5, 5), (5, 3), (5,), (5,), (7, 5)]
    agree(ours, theirs, *(random(*shape) for shape in shapes))


def test_a_step_of_an_lstm_agrees_with_torch(agree, random):
    def ours(x, hidden, cell, w_x, w_h, b):
        i, f, g, o = (w_x @ x + w_h @ hidden + b).reshape(4, 5)
        cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        return concatenate([sigmoid(o) * tanh(cell), cell])

    def theirs(x, hidden, cell, w_x, w_h, b):
        state = (hidden[None], cell[None])
        return torch.cat(torch.lstm_cell(x[None], state, w_x, w_h, b, torch.zeros(20).double()), 1)[
            0
        ]

    shapes = [(3,), (5,), (5,), (20, 3), (20, 5), (20,)]
    agree(ours, theirs, *(random(*shape) for shape in shapes))


def test_a_causal_attention_head_agrees_with_torch(agree, random):
    """softmax(QKᵀ / √d) V, with keys after the query hidden"""
    mask = np.tril(np.ones((5, 5), dtype=bool))

    def ours(x, w_q, w_k, w_v):
        scores = (x @ w_q) @ (x @ w_k).mT / np.sqrt(3)  # (batch, query, key)
        return softmax(where(mask, scores, -np.inf)) @ (x @ w_v)  # (batch, query, value)

    def theirs(x, w_q, w_k, w_v):
        return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, torch.tensor(mask))

    agree(ours, theirs, random(2, 5, 7), random(7, 3), random(7, 3), random(7, 11))


def test_inside_an_attention_head_every_value_and_gradient_agrees_with_torch(random):
    arrays = {"x": random(5, 7), "Wq": random(7, 3), "Wk": random(7, 3), "Wv": random(7, 11)}

    def head(x, w_q, w_k, w_v, softmax):
        parts = {"queries": x @ w_q, "keys": x @ w_k, "values": x @ w_v}
        parts["scores"] = parts["queries"] @ parts["keys"].mT / 3**0.5
        parts["weights"] = softmax(parts["scores"], -1)
        parts["context"] = parts["weights"] @ parts["values"]
        parts["loss"] = (parts["context"] ** 2).mean()
        return parts

    leaves = {name: parameter(name, array) for name, array in arrays.items()}
    tensors = {name: torch.tensor(a, requires_grad=True) for name, a in arrays.items()}
    ours = leaves | head(*leaves.values(), softmax)
    theirs = tensors | head(*tensors.values(), torch.softmax)
    for tensor in theirs.values():
        tensor.retain_grad()
    theirs["loss"].backward()
    Graph(ours["loss"]).backward()
    for name, node in ours.items():
        tensor = theirs[name]
        assert_allclose(node.value, tensor.detach().numpy(), rtol=1e-10, err_msg=name)
        assert_allclose(node.gradient, tensor.grad.numpy(), rtol=1e-10, atol=1e-14, err_msg=name)


def test_two_heads_split_and_merged_agree_with_torch(agree, random):
    def ours(x, w_q, w_k, w_v):
        q, k, v = (
            (x @ w).reshape(5, 2, 3).transpose(1, 0, 2)  # (head, position, size)
            for w in (w_q, w_k, w_v)
        )
        context = softmax(q @ k.mT / np.sqrt(3)) @ v
        return context.transpose(1, 0, 2).reshape(5, 6)

    def theirs(x, w_q, w_k, w_v):
        q, k, v = ((x @ w).reshape(5, 2, 3).transpose(0, 1) for w in (w_q, w_k, w_v))
        return F.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(5, 6)

    agree(ours, theirs, random(5, 7), random(7, 6), random(7, 6), random(7, 6))


def test_a_layer_norm_made_of_its_parts_agrees_with_torch(agree, random):
    def ours(x, scale, shift):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return centred / deviation * scale + shift

    def theirs(x, scale, shift):
        return F.layer_norm(x, (7,), scale, shift, eps=1e-5)

    agree(ours, theirs, random(2, 5, 7), random(7), random(7))
