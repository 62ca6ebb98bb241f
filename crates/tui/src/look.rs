//! How things look: the terminal's own sixteen colours and attributes, so that it is readable on
//! any background, and without colours at all.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) has_color: bool,
}

impl Look {
    fn colored(self, color: Color) -> Style {
        if self.has_color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn leaning(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    pub(crate) fn heading(self) -> Style {
        self.colored(Color::Cyan)
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub(crate) fn accent(self) -> Style {
        self.colored(Color::Cyan)
    }

    pub(crate) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    pub(crate) fn bad(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn warning(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn code(self) -> Style {
        self.colored(Color::Magenta)
    }

    pub(crate) fn link(self) -> Style {
        self.colored(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn keyword(self) -> Style {
        self.colored(Color::Blue).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn string(self) -> Style {
        self.colored(Color::Green)
    }

    pub(crate) fn number(self) -> Style {
        self.colored(Color::Magenta)
    }

    pub(crate) fn added(self) -> Style {
        self.colored(Color::Green)
    }

    pub(crate) fn removed(self) -> Style {
        self.colored(Color::Red)
    }
}
